package service

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeedsTogether works in one box by two services, as two processes behind a load balancer do.
func TestDeedsTogether(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	d := readDocument(t)
	var c [2]deedsClient
	for i := range c {
		c[i] = deedsClient{serveAPI(t, d, open(t, name, nil, small("small", nil)),
			HandlerConfig{}), t}
	}
	c[0].ask(t, "", "POST /sandboxes?sandbox_id=one", "", 200, nil)
	c[0].execute("cd /tmp; x=5")
	require.Equal(t, "/tmp 5\n", c[1].execute("echo $PWD $x"), "the main session is shared")
	var job struct{ ID string }
	c[0].do("POST jobs", `{"command":"echo a job; sleep 1000"}`, 200, &job)
	var got answer
	c[1].do("POST jobs/"+job.ID+"/wait", `{"until":"a job"}`, 200, &got)
	require.Equal(t, "a job", *got.Matched, "and so are jobs")

	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", c[0].url+"/sandboxes/one/execute",
		strings.NewReader(`{"command":"echo begun; read x; echo got $x",
			"at_question":"keep_waiting"}`))
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = bufio.NewReader(res.Body).ReadString('\n') // its first output
	require.NoError(t, err)
	c[1].fails("POST execute", `{"command":"true"}`, 409, "busy: ")
	c[1].fails("POST sessions/main/input", `{"text":"no\n"}`, 409, "busy: ")
	leave()
	eventually(t, "the session is left", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), "POST",
			c[1].url+"/sandboxes/one/sessions/main/wait", nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		res.Body.Close()
		return res.StatusCode == 200
	})
	c[1].do("POST sessions/main/input", `{"text":"it\n"}`, 200, &got)
	require.Contains(t, got.Output, "got it\n")
	c[0].ask(t, "", "DELETE /sandboxes/one", "", 200, nil)
}
