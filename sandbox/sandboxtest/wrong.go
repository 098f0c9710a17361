package sandboxtest

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// wrongInputs: what cannot be meant is an error that says so. A time that has passed is at once.
func wrongInputs(t *testing.T, b *box) {
	t.Parallel()
	sh := b.open(t)
	execute := func(command string, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
		return within(b, t, "Execute", func(ctx context.Context) (*sandbox.Result, error) {
			return sh.Execute(ctx, command, opts...)
		})
	}
	for _, p := range []sandbox.Policy{-1, 99} {
		_, err := execute(": >touched", sandbox.AtQuestion(p))
		require.ErrorContains(t, err, "there is no policy")
	}
	same(t, "", sh.output("ls"))

	res, err := execute("sleep 1000", sandbox.Timeout(-time.Second))
	require.ErrorIs(t, err, sandbox.ErrTimeout)
	exited(t, res, 130)
	for _, at := range []sandbox.ExecOption{sandbox.Yield(-1), sandbox.Idle(-1)} {
		res, err = execute("sleep 1000", at)
		require.NoError(t, err)
		running(t, res)
		_, err = within(b, t, "Interrupt", func(ctx context.Context) (*sandbox.Result, error) {
			return sh.Interrupt(ctx)
		})
		require.NoError(t, err)
	}
	sh.lives()

	_, err = within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
		return b.Open(ctx, sandbox.Env("A B=1"))
	})
	require.ErrorContains(t, err, "without spaces in NAME")
	code, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
		return b.Run(ctx, &sandbox.Cmd{Args: []string{"ls -l"}})
	})
	require.Equal(t, 127, code)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "each argument is an element")
}
