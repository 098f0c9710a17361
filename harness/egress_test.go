package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sshbox"
)

// TestEgress shows that a task's box reaches what the task says, also as another user, and also in
// the check.
func TestEgress(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Host)
	}))
	defer s.Close()
	task := small("task")
	task.AgentUser = "1000"
	task.Limits.Egress = []string{"http://*.example.com"}
	task.Setup = "chmod 777 ."
	task.Check.Command = "grep a.example.com got && wget -qO- http://b.example.com | grep b.ex"
	agent := typing("wget -qO got http://a.example.com; wget -qO- http://evil.test; " +
		"wget -qO- http://127.0.0.1; true")
	config := Config{Retries: -1, Egress: func(task Task, c *egress.Config) error {
		c.Allow[0].To = s.Listener.Addr().String()
		return nil
	}, Place: sshbox.Place{Config: sshbox.Config{Pull: sshbox.PullNever}}}
	r := runOne(t, task, agent, config)
	require.Equal(t, Pass, r.Status, "%+v\n%s", r, logOf(t, r))
	require.Contains(t, logOf(t, r), "--- egress: evil.test:80 is not on the list of what this "+
		"sandbox may reach: http://*.example.com\n")
	require.Equal(t, map[string]float64{RefusedCount: 2}, r.Counts)
	var hosts []string
	for _, e := range egressOf(t, r) {
		hosts = append(hosts, fmt.Sprint(e.Host, " ", e.Status))
	}
	require.Equal(t, []string{"a.example.com 200", "evil.test 403", "127.0.0.1 403",
		"b.example.com 200"}, hosts)
	page, err := os.ReadFile(filepath.Join(r.dir, r.Dir, pageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "<dt>egress refused</dt><dd>2</dd>")
	require.Contains(t, string(page), `<a href="egress.jsonl">`)

	config.Egress = func(Task, *egress.Config) error { return errors.New("no key today") }
	r = runOne(t, task, agent, config)
	require.Equal(t, Lost, r.Status)
	require.Contains(t, r.Reason, "Config.Egress: no key today")
}

// egressOf returns the Events of a result's egress.jsonl.
func egressOf(t *testing.T, r testResult) (events []egress.Event) {
	t.Helper()
	f, err := os.Open(filepath.Join(r.dir, r.Dir, egressFile))
	require.NoError(t, err)
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var e egress.Event
		require.NoError(t, d.Decode(&e))
		events = append(events, e)
	}
	return events
}

func TestEgressWrong(t *testing.T) {
	t.Parallel()
	task := small("task")
	for want, limits := range map[string]Limits{
		`limits.egress[1]: rule "htp://b.test", column 1: there is no scheme`: {
			Egress: []string{"a.test", "htp://b.test"}},
		`limits.network: "open": limits.egress needs a box without a network`: {
			Egress: []string{"a.test"}, Network: "open"},
	} {
		task.Limits = limits
		require.ErrorContains(t, task.Validate(), want)
	}
	// This machine has a network.
	task.Limits, task.Image = Limits{Egress: []string{"a.test"}}, ""
	_, err := Run(t.Context(), Config{Tasks: []Task{task}, Agent: typing("true"), Name: "agent",
		Dir: t.TempDir(), Place: localbox.Place{}})
	require.ErrorContains(t, err, "Task.Limits.Network: ")

	require.Equal(t, Limits{Network: "none", Egress: []string{"a.test"}},
		Limits{}.or(Limits{Network: "none", Egress: []string{"a.test"}}))
	require.Equal(t, Limits{Network: "open"},
		Limits{Network: "open"}.or(Limits{Network: "none", Egress: []string{"a.test"}}))
	require.Equal(t, Limits{Network: "none", Egress: []string{"a.test"}},
		Limits{Egress: []string{"a.test"}}.or(Limits{Network: "open"}))
}
