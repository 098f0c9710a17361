package e2bbox

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestMain checks that the tests leave no goroutine and no container behind.
func TestMain(m *testing.M) { dockertest.Main(m) }

// configOf returns the Config of boxes of a gateway.
func configOf(t testing.TB, g *e2btest.Gateway) Config {
	return Config{APIKey: e2btest.Key, APIURL: g.URL, SandboxURL: g.URL, Logger: testenv.Logger(t)}
}

// within returns a context that ends a call which hangs.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	t.Cleanup(cancel)
	return ctx
}

// newBox makes a box, and closes it when the test ends.
func newBox(t testing.TB, c Config) *E2BBox {
	t.Helper()
	b, err := New(within(t), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// does executes a command, and checks what it prints.
func does(t testing.TB, b *E2BBox, command, want string) {
	t.Helper()
	r, err := b.Execute(within(t), command)
	require.NoError(t, err)
	require.Equal(t, want, r.Output)
}
