package sandboxtest

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// environments changes a program's environment and directory.
func environments(t *testing.T, b *box) {
	// The program gets Env, and the variable that the implementation needs.
	parallel(t, "ReplaceEnv", func(t *testing.T) {
		dir := b.tmp + "/" + b.tool(t)
		env := []string{"PATH=" + dir + ":/bin:/usr/bin", "A=it's\na $value", "B=1", "B=2",
			"EMPTY="}
		out := b.stdout(t, &sandbox.Cmd{Args: []string{"env"}, Dir: dir, Env: env,
			ReplaceEnv: true})
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		slices.Sort(lines)
		require.Len(t, lines, 6)
		require.Equal(t, []string{"A=it's", "B=2", "EMPTY=", env[0]}, lines[:4])
		require.Contains(t, lines[4], "SANDSHELL_SESSION=")
		require.Equal(t, "a $value", lines[5])
		same(t, "tool\n", b.stdout(t, &sandbox.Cmd{Args: []string{"tool"}, Env: env,
			ReplaceEnv: true}))
		code, err := b.tryRun(t, &sandbox.Cmd{Args: []string{"env"}, ReplaceEnv: true})
		require.ErrorIs(t, err, fs.ErrNotExist, "without a PATH")
		require.Equal(t, 127, code)
	})
	// Processes whose parent has ended by then end too.
	parallel(t, "ReplaceEnvCancel", func(t *testing.T) {
		m := b.marker(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stdout := &watcher{text: "before\n", seen: func() { go cancel() }}
		_, err := within(b, t, "Run", func(context.Context) (int, error) {
			script := "(sleep " + string(m) + " >/dev/null &); echo before; sleep " + string(m)
			return b.Run(ctx, &sandbox.Cmd{Args: inShell(script),
				Env: []string{"PATH=/bin:/usr/bin"}, ReplaceEnv: true, Stdout: stdout})
		})
		require.ErrorIs(t, err, context.Canceled)
		b.gone(t, m)
	})
	// the contract does not say whose home ~ would be
	parallel(t, "HomeDir", func(t *testing.T) {
		for _, dir := range []string{"~", "~/x"} {
			_, err := b.tryRun(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir})
			require.ErrorIs(t, err, fs.ErrInvalid)
			require.ErrorContains(t, err, "~ is not expanded")
			_, err = b.tryOpen(t, sandbox.Dir(dir))
			require.ErrorIs(t, err, fs.ErrInvalid)
			require.ErrorContains(t, err, "~ is not expanded")
		}
	})
	// Dir is relative to the box's directory, whatever the session's is.
	parallel(t, "RelativeDir", func(t *testing.T) {
		dir := fmt.Sprintf("sandboxtest-%d", b.suite.markers.Add(1))
		b.needScript(t, "the box's directory is read-only",
			`mkdir -p "$1/sub dir" 2>/dev/null`, dir)
		t.Cleanup(func() { b.script(t, `rm -r "$1"`, dir) })
		relative, want := dir+"/sub dir", strings.TrimSuffix(b.home, "/")+"/"+dir+"/sub dir\n"
		same(t, want, b.stdout(t, &sandbox.Cmd{Args: inShell("pwd"), Dir: relative}))
		b.script(t, `printf '#!/bin/sh\necho own\n' > "$1/own" && chmod +x "$1/own"`, relative)
		same(t, "own\n", b.stdout(t, &sandbox.Cmd{Args: []string{"./own"}, Dir: relative}))
		same(t, want, b.openPlain(t, sandbox.Dir(relative)).output("pwd"))
		same(t, want, b.start(t, "pwd", sandbox.Dir("./"+relative)).ends(0).Output)
		_, err := b.tryRun(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir + "/none/below"})
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}
