package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// The program as a person runs it: two agents, a directory of results that goes on, and mistakes.
func TestEvalHarness(t *testing.T) {
	dockertest.Engine(t, dockertest.Image)
	const tasks = "../../harness/testdata/tasks.jsonl"
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(script, []byte("cd /work\nsed -i 's|1.0/5.0|1.0/6.0|' "+
		"colorsys.py\n"), 0o644))
	for _, c := range []struct {
		agent, only string
		status      int
		says        string
	}{
		{"oracle", "colorsys/s*", 0, "2 pass of 2 tasks"},
		{"oracle", "colorsys/s*", 0, "2 pass of 2 tasks"},
		{"nop", "colorsys/sixth", 1, "1 fail of 1 task"},
		{"nop", "colorsys/sixth,colorsys/sixth", 1, "1 fail of 1 task"},
		{"script:" + script, "colorsys/s*", 1, "1 pass, 1 fail of 2 tasks"},
	} {
		var stdout, stderr bytes.Buffer
		results := filepath.Join(dir, c.agent[:3])
		status, err := run(t.Context(), []string{"-agent", c.agent, "-only", c.only, "-results",
			results, "-memory", "1g", tasks}, &stdout, &stderr)
		require.NoError(t, err)
		require.Equal(t, c.status, status, "%s%s", &stdout, &stderr)
		require.Contains(t, stdout.String(), c.says)
		require.FileExists(t, filepath.Join(results, "report.html"))
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{tasks}, "it takes -agent"},
		{[]string{"-agent", "gpt", tasks}, "there are oracle, nop, script:FILE and mcp:PROGRAM"},
		{[]string{"-agent", "nop", "-only", "x", tasks}, "no task has such an ID"},
		{[]string{"-agent", "nop", "-only", "colorsys/*", "-only", "x,colorsys/sixth", tasks},
			`-only "x": no task`},
		{[]string{"-agent", "nop", "-again", "failed", "-results", filepath.Join(dir, "small"),
			tasks}, `Config.Again: "failed"`},
		{[]string{"-agent", "mcp:nosuch -x", tasks},
			`the agent's program: exec: "nosuch": executable file not found`},
		{[]string{"-agent", "mcp:", tasks}, "the agent's program: it has no name"},
		{[]string{"-agent", "nop", "-memory", "much", tasks}, "-memory"},
		{[]string{"-agent", "nop", "-memory", "100m", "-results", filepath.Join(dir, "small"),
			tasks}, "more than the 100MiB"},
		{[]string{"-agent", "nop", "-cpus", "-1", "-results", filepath.Join(dir, "small"), tasks},
			"0 means no bound"},
		{[]string{"-agent", "nop", tasks, "-cpus", "1"}, "behind all flags"},
		{[]string{"-agent", "nop", "-image", "x", tasks}, "-image is for a file of InterCode"},
		{[]string{"-agent", "nop", dir + "/fs_1.json"}, "-image does"},
		{[]string{"-agent", "script:" + dir + "/none", tasks}, "no such file"},
		{[]string{"-agent", "nop", dir + "/none.jsonl"}, "no such file"},
	} {
		var out bytes.Buffer
		status, err := run(t.Context(), c.args, &out, &out)
		require.Equal(t, 2, status)
		require.ErrorContains(t, err, c.says)
	}
}
