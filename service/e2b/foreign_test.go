package e2b_test

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/e2btest"
)

// TestForeignClient runs a client that shares no code with the server: see testdata/client.py.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	// Five minutes are against hanging: there are 97 calls, and each has a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "python3", "testdata/client.py", g.URL,
		e2btest.Key).CombinedOutput()
	require.NoError(t, err, "%s", out)
	calls := 0
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		calls++
	}
	require.GreaterOrEqual(t, calls, 97, "%s", out)
	t.Logf("%s", out)
}
