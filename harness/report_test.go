package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mixed runs three tasks that end in different ways.
func mixed(t *testing.T) (s *Summary, dir string, lines string) {
	t.Helper()
	dockertest.Engine(t, dockertest.Busybox)
	commands := map[string]string{
		"right":  "cp work/wanted made/file; echo '<b>it is' done",
		"asking": "rm -i work/wanted",
		"wrong":  "echo \"<script>document.title = 'taken'</script>\"",
	}
	dir = t.TempDir()
	var progress bytes.Buffer
	s, err := Run(t.Context(), Config{
		Tasks: []Task{small("right"), small("asking"), small("wrong")}, Dir: dir, Name: "mixed",
		Parallel: 1, Progress: &progress,
		Agent: func(ctx context.Context, trial *Trial) error {
			return typing(commands[trial.Task.ID])(ctx, trial)
		},
	})
	require.NoError(t, err)
	return s, dir, progress.String()
}

// TestSummary checks the table, the lines of progress and the files.
func TestSummary(t *testing.T) {
	t.Parallel()
	s, dir, lines := mixed(t)
	require.Regexp(t,
		`^1/3 pass right \(.* s\)\n2/3 stuck asking \(.* s\): .*nobody answers\n3/3 fail wrong \(.* s\): check: exit status 1: cmp: .*No such file.*\n$`, lines)
	var table bytes.Buffer
	require.NoError(t, s.WriteTable(&table))
	require.Regexp(t,
		`(?s)^TASK +STATUS +BOX.*\nright +pass .*\nasking +stuck .*\nwrong +fail .*check: exit status 1: cmp: .*\n1 pass, 1 fail, 1 stuck of 3 tasks\n$`, table.String())

	data := dataOf(t, dir)
	require.True(t, data.Ended)
	require.Len(t, data.Tasks, 3)
	for i, r := range s.Results {
		require.Equal(t, r, data.Tasks[i].Result)
		html, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(data.Tasks[i].Page)))
		require.NoError(t, err)
		require.NotContains(t, string(html), "<script>document", "what an agent prints is text")
		require.NotContains(t, string(html), "ZgotmplZ")
	}
	cast, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.Results[0].Recording)))
	require.NoError(t, err)
	p, err := parseRecording(bytes.NewReader(cast))
	require.NoError(t, err)
	require.Len(t, p.Steps, 1)
	require.Equal(t, "<b>it is done\n", p.Steps[0].Output)
}

// dataOf returns what the list of a report shows.
func dataOf(t testing.TB, dir string) (data struct {
	Ended bool
	Tasks []reportRow
}) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "report", "data.js"))
	require.NoError(t, err)
	text = bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("report(")), []byte(");\n"))
	require.NoError(t, json.Unmarshal(text, &data))
	return data
}

// TestReportLive looks at the report while tasks are under way.
func TestReportLive(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	dir := t.TempDir()
	look := func(task Task) error {
		data := dataOf(t, dir)
		assert.False(t, data.Ended)
		assert.Equal(t, statusRunning, data.Tasks[1].Status)
		assert.Equal(t, Pass, data.Tasks[0].Status, "the result of before is there")
		assert.Equal(t, statusWaiting, data.Tasks[2].Status)
		assert.Empty(t, data.Tasks[2].Page)
		html, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(data.Tasks[1].Page)))
		assert.NoError(t, err)
		assert.Contains(t, string(html), task.Instruction)
		return errors.New("ends here")
	}
	c := Config{Tasks: []Task{small("a"), small("b/c"), small("d")}, Dir: dir, Name: "agent",
		Parallel: 1, Agent: Oracle}
	only := c
	only.Tasks = c.Tasks[:1]
	_, err := Run(t.Context(), only)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	c.Agent = func(_ context.Context, trial *Trial) error {
		defer cancel()
		return look(trial.Task)
	}
	_, err = Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	data := dataOf(t, dir)
	require.True(t, data.Ended)
	require.Equal(t, []Status{Pass, statusWaiting, statusWaiting}, []Status{data.Tasks[0].Status,
		data.Tasks[1].Status, data.Tasks[2].Status})
}
