package tools

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/egress"
	"github.com/stretchr/testify/require"
)

// fetch is a function of a shell: it asks the proxy for a URL by bash alone.
const fetch = `fetch() {
  local proxy=${HTTP_PROXY#http://} host=${1#http://}
  local at=${proxy#*@} login; login=$(printf %s "${proxy%@*}" | base64 -w0)
  exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
  printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n' "$1" "${host%%/*}" >&3
  printf 'Proxy-Authorization: Basic %s\r\n\r\n' "$login" >&3
  sed -n '$p' <&3; exec 3>&-
}`

// TestEgress shows that the description says what may be reached, and that each refusal is told of
// once, whichever tool the model calls next.
func TestEgress(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "this is", r.Host)
	}))
	defer s.Close()
	box := local(t)
	rules := egress.Rules("GET http://a.example.com/x/*")
	rules[0].To = s.Listener.Addr().String()
	gate, err := egress.New(egress.Config{Allow: rules, Advisory: true})
	require.NoError(t, err)
	defer gate.Close()
	exit, err := gate.Attach(t.Context(), box)
	require.NoError(t, err)
	c := brief
	c.Egress = exit
	text(t, combined(t, Shell(box, patient)), "run", "command", fetch+"\nfetch http://early.test/")
	set := combined(t, Box(box, c), Func("lookup", "", lookup))
	description := func() string {
		for _, tool := range set.Tools() {
			if tool.Name == "run" {
				return tool.Description
			}
		}
		return ""
	}
	require.True(t, strings.HasSuffix(description(), " Of what is outside of the box, programs "+
		"reach only this, by a proxy that is set in the environment: GET "+
		"http://a.example.com/x/*."), description())
	require.NoError(t, exit.Allow("b.example.com"))
	require.Contains(t, description(), "http://a.example.com/x/*, b.example.com.")

	run := func(command string) string { return text(t, set, "run", "command", command) }
	require.Equal(t, "this is a.example.com\n", run("fetch http://a.example.com/x/1"))
	require.Equal(t, "[egress: evil.test:80 refused]\n", lastLine(run("fetch http://evil.test/")))
	require.Equal(t, "ok\n", run("echo ok"))
	require.Equal(t, "[egress: GET http://a.example.com/y refused, 2 times]\n",
		lastLine(run("fetch http://a.example.com/y; fetch http://a.example.com/y")))
	for range 2 { // the second time there is nothing new
		require.Equal(t, "a 0 []", text(t, set, "lookup", "word", "a"))
	}

	// A job's refusal is told of by the next call, here that of its start or that of its end.
	job := text(t, set, "job_start", "command", fetch+"\nfetch http://job.test/") +
		text(t, set, "job_wait", "job", "job-1")
	require.Equal(t, 1, strings.Count(job, "[egress: job.test:80 refused]\n"), job)
	require.Equal(t, "ok\n", run("echo ok"))
	require.Contains(t, refused(t, set, "answer", "text", "x"), "no command is unfinished")

	// Many are few lines, and the reply is no longer than it may be.
	long := run("seq 100000; for i in $(seq 24); do fetch http://evil$((i%8)).test/ >/dev/null; " +
		"done; fetch http://evil1.test/")
	require.LessOrEqual(t, len(long), c.MaxReply)
	require.Equal(t, 5, strings.Count(long, ".test:80 refused"), long)
	require.Regexp(t, `\[egress: \d+ more refused\]\n$`, long)
	require.Contains(t, long, "[the omitted part begins at offset")
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return lines[len(lines)-2]
}

// A countedEgress refuses as often as it is told.
type countedEgress struct {
	mu    sync.Mutex
	count int
}

func (e *countedEgress) Reachable() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var rules []string
	for i := range e.count {
		rules = append(rules, fmt.Sprintf("h%d.test", i))
	}
	return rules
}

func (e *countedEgress) RefusedSince(mark int) ([]string, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.count < 0 {
		panic("no")
	}
	var refused []string
	for i := mark; i < e.count; i++ {
		refused = append(refused, "x refused")
	}
	return refused, e.count
}

func (e *countedEgress) set(n int) {
	e.mu.Lock()
	e.count = n
	e.mu.Unlock()
}

// TestEgressSets shows what several sets, concurrent calls, and a broken Egress do.
func TestEgressSets(t *testing.T) {
	t.Parallel()
	box, other := local(t), local(t)
	mine, others := &countedEgress{}, &countedEgress{}
	c, o := patient, patient
	c.Egress, o.Egress = mine, others
	set := combined(t, Shell(box, c), Jobs(box, c).Prefix("b_"), Shell(other, o).Prefix("o_"))
	mine.set(1)
	require.Equal(t, "a\n", text(t, set, "o_run", "command", "echo a"))
	require.Equal(t, "[no jobs]\n[egress: x refused]\n", text(t, set, "b_job_list"))
	require.Equal(t, "a\n", text(t, set, "run", "command", "echo a"))
	mine.set(9)
	texts := make(chan string, 8)
	for range cap(texts) {
		go func() {
			r, err := set.Do(t.Context(), "b_job_list", nil)
			if err != nil {
				texts <- err.Error()
				return
			}
			texts <- r.Text
		}()
	}
	all := ""
	for range cap(texts) {
		all += <-texts
	}
	require.Equal(t, 8, strings.Count(all, "[no jobs]\n"), all)
	require.Equal(t, 1, strings.Count(all, "[egress: x refused, 8 times]\n"), all)

	mine.set(25)
	require.Regexp(t, `h19\.test, and 5 more\.$`, set.Tools()[0].Description)
	mine.set(0)
	require.Regexp(t, `reach nothing outside of the box\.$`, set.Tools()[0].Description)
	mine.set(-1)
	_, err := set.Do(t.Context(), "b_job_list", nil)
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	_, err = New(Shell(box, c))
	require.ErrorAs(t, err, &panicked)
	c.Egress = (*egress.Exit)(nil)
	require.Equal(t, "a\n", text(t, combined(t, Shell(box, c)), "run", "command", "echo a"))
}
