package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// environments: what a program finds, when it is not what the box has.
func environments(t *testing.T, b *box) {
	t.Parallel()
	t.Run("ReplaceEnv", func(t *testing.T) { // and what the box needs itself
		t.Parallel()
		var stdout bytes.Buffer
		dir := b.tmp + "/" + b.tool(t)
		env := []string{"PATH=" + dir + ":/bin:/usr/bin", "A=it's\na $value", "B=1", "B=2",
			"EMPTY="}
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"env"}, Dir: dir, Env: env,
			ReplaceEnv: true, Stdout: &stdout}))
		lines := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
		slices.Sort(lines)
		require.Len(t, lines, 6)
		require.Equal(t, []string{"A=it's", "B=2", "EMPTY=", env[0]}, lines[:4])
		require.Contains(t, lines[4], "SANDSHELL_SESSION=")
		require.Equal(t, "a $value", lines[5])
		stdout.Reset()
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"tool"}, Env: env, ReplaceEnv: true,
			Stdout: &stdout}))
		same(t, "tool\n", stdout.String())
		code, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
			return b.Run(ctx, &sandbox.Cmd{Args: []string{"env"}, ReplaceEnv: true})
		})
		require.ErrorIs(t, err, fs.ErrNotExist, "without a PATH")
		require.Equal(t, 127, code)
	})
	t.Run("ReplaceEnvCancel", func(t *testing.T) { // finds what is no descendant any more
		t.Parallel()
		m := b.marker(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stdout := &watcher{text: "before\n", seen: func() { go cancel() }}
		_, err := within(b, t, "Run", func(context.Context) (int, error) {
			script := "(sleep " + string(m) + " >/dev/null &); echo before; sleep " + string(m)
			return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", script},
				Env: []string{"PATH=/bin:/usr/bin"}, ReplaceEnv: true, Stdout: stdout})
		})
		require.ErrorIs(t, err, context.Canceled)
		b.gone(t, m)
	})
	t.Run("HomeDir", func(t *testing.T) { // whose home it would be is not said
		t.Parallel()
		for _, dir := range []string{"~", "~/x"} {
			_, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
				return b.Run(ctx, &sandbox.Cmd{Args: []string{"true"}, Dir: dir})
			})
			require.ErrorIs(t, err, fs.ErrInvalid)
			require.ErrorContains(t, err, "~ is not expanded")
			_, err = within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
				return b.Open(ctx, sandbox.Dir(dir))
			})
			require.ErrorIs(t, err, fs.ErrInvalid)
			require.ErrorContains(t, err, "~ is not expanded")
		}
	})
	// starts where Run does without one, whatever the session's directory
	t.Run("RelativeDir", func(t *testing.T) {
		t.Parallel()
		dir := fmt.Sprintf("sandboxtest-%d", b.suite.markers.Add(1))
		if code, _, _ := b.sh(t, `mkdir -p "$1/sub dir" 2>/dev/null`, dir); code != 0 {
			b.suite.skip(t, "the box's directory is read-only")
		}
		t.Cleanup(func() { b.script(t, `rm -r "$1"`, dir) })
		relative, want := dir+"/sub dir", strings.TrimSuffix(b.home, "/")+"/"+dir+"/sub dir\n"
		var stdout bytes.Buffer
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", "pwd"}, Dir: relative,
			Stdout: &stdout}))
		same(t, want, stdout.String())
		stdout.Reset()
		b.script(t, `printf '#!/bin/sh\necho own\n' > "$1/own" && chmod +x "$1/own"`, relative)
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"./own"}, Dir: relative,
			Stdout: &stdout}))
		same(t, "own\n", stdout.String())
		session, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
			return b.Open(ctx, sandbox.Dir(relative))
		})
		require.NoError(t, err)
		sh := &shell{Session: session, b: b, t: t}
		same(t, want, sh.output("pwd"))
		sh.close()
		job, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
			return b.Background(ctx, "pwd", sandbox.Dir("./"+relative))
		})
		require.NoError(t, err)
		res, err := within(b, t, "Wait", job.Wait)
		require.NoError(t, err)
		same(t, want, res.Output)
		_, err = within(b, t, "Run", func(ctx context.Context) (int, error) {
			return b.Run(ctx, &sandbox.Cmd{Args: []string{"true"}, Dir: dir + "/none/below"})
		})
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}
