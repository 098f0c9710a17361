package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// TestEvalHarness runs the program as a person does: with several agents, with a directory of
// results that exists, and with mistakes in the command line.
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
	var stdout bytes.Buffer
	status, err := run(t.Context(), []string{"-validate", "-only", "colorsys/sixth", "-results",
		filepath.Join(dir, "validate"), tasks}, &stdout, io.Discard)
	require.NoError(t, err)
	require.Zero(t, status)
	require.Equal(t, "tasks that prove nothing: 0 of 1\n", stdout.String())
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{tasks}, "give -agent"},
		{[]string{"-agent", "gpt", tasks}, "give oracle, nop, script:FILE or mcp:PROGRAM"},
		{[]string{"-agent", "nop", "-only", "x", tasks}, "no task's ID matches it"},
		{[]string{"-agent", "nop", "-only", "colorsys/*", "-only", "x,colorsys/sixth", tasks},
			`-only "x": no task`},
		{[]string{"-agent", "nop", "-again", "failed", "-results", filepath.Join(dir, "small"),
			tasks}, `Config.Again: "failed"`},
		{[]string{"-agent", "mcp:nosuch -x", tasks},
			`Program: exec: "nosuch": executable file not found`},
		{[]string{"-agent", "mcp:", tasks}, "Program: it has no name"},
		{[]string{"-agent", "nop", "-memory", "much", tasks}, "-memory"},
		{[]string{"-agent", "nop", "-memory", "100m", "-results", filepath.Join(dir, "small"),
			tasks}, "more than 100MiB"},
		{[]string{"-agent", "nop", "-cpus", "-1", "-results", filepath.Join(dir, "small"), tasks},
			"0 means no bound"},
		{[]string{"-agent", "nop", tasks, "-cpus", "1"}, "after all flags"},
		{[]string{"-agent", "nop", "-image", "x", tasks},
			"-image is only for a .json file of InterCode"},
		{[]string{"-agent", "nop", dir + "/fs_1.json"}, "give -image"},
		{[]string{"-agent", "script:" + dir + "/none", tasks}, "no such file"},
		{[]string{"-agent", "nop", dir + "/none.jsonl"}, "no such file"},
	} {
		var out bytes.Buffer
		status, err := run(t.Context(), c.args, &out, &out)
		require.Equal(t, 2, status)
		require.ErrorContains(t, err, c.says)
	}
}
