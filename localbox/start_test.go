//go:build linux || darwin || freebsd || netbsd || openbsd

package localbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// TestIgnoredSignals checks that the shells of a program that ignores SIGINT do not inherit that.
// The program itself goes on ignoring SIGINT. nohup, and "&" in a script, start programs so.
func TestIgnoredSignals(t *testing.T) {
	const inside = "SANDSHELL_TEST_IGNORES"
	if os.Getenv(inside) == "" {
		cmd := exec.Command("sh", "-c", `trap "" HUP INT QUIT; exec "$@"`, "sh", os.Args[0],
			"-test.run=^TestIgnoredSignals$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.True(t, bytes.Contains(out, []byte("--- PASS: TestIgnoredSignals/ByItself")), "%s",
			out)
		return
	}
	t.Run("AtItsStart", func(t *testing.T) { ignoredSignals(t) })
	t.Run("ByItself", func(t *testing.T) {
		signal.Reset(syscall.SIGINT)
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		ignoredSignals(t)
	})
}

func ignoredSignals(t *testing.T) {
	require.True(t, signal.Ignored(syscall.SIGINT))

	// SIGINTs arrive all the time, and must not end this program while it starts others.
	stop := make(chan struct{})
	var hits sync.WaitGroup
	hits.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				syscall.Kill(os.Getpid(), syscall.SIGINT)
			}
		}
	})
	defer func() {
		close(stop)
		hits.Wait()
	}()

	// The second interrupt key would come after half of Grace. So only the first can end the
	// program in time.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	box, err := New(t.Context(), Config{Grace: time.Hour})
	require.NoError(t, err)
	defer box.Close()
	var sessions sync.WaitGroup
	for range 5 {
		sessions.Go(func() {
			s, err := box.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_, err = s.Execute(t.Context(), "sh -c 'echo up; exec sleep 100'",
				sandbox.Until(regexp.MustCompile("up")))
			if err != nil {
				t.Error(err)
				return
			}
			r, err := s.Interrupt(ctx)
			if err != nil || r.ExitCode != 130 {
				t.Errorf("not ended by the first interrupt key: %+v, %v", r, err)
			}
		})
	}
	sessions.Wait()
	var stdout bytes.Buffer
	_, err = box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
		"kill -INT $$; echo survived"}, Stdout: &stdout})
	require.NoError(t, err)
	require.Empty(t, stdout.String())
	require.True(t, signal.Ignored(syscall.SIGINT))
}
