package sshbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestNoMoreProcesses has programs use up PIDs. The box starts nothing more, says so in its errors,
// and lives, because boxd has the processes that it needs.
func TestNoMoreProcesses(t *testing.T) {
	t.Parallel()
	rounds := 1
	if testenv.Full() {
		rounds = 4
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			box := newBox(t, Config{Image: testImage, Network: "none", PIDs: 64})
			ctx := t.Context()
			session, err := box.Open(ctx)
			noError(t, err)
			r, err := box.Execute(ctx, `sh -c 'while :; do sleep 1000 & echo $!; done' 2>&1`,
				sandbox.Timeout(30*time.Second))
			noError(t, err)
			require.Equal(t, sandbox.Exited, r.State)
			require.Contains(t, r.Output, "fork")
			pids, _, _ := strings.Cut(strings.ReplaceAll(r.Output, "\n", " "), " sh:")
			var all sync.WaitGroup
			for range 30 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, testenv.Limit)
					defer cancel()
					if code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}}); code == 0 &&
						err == nil {
						return // another process has just ended
					} else if err == nil || ctx.Err() != nil {
						t.Errorf("Run: %d, %v", code, err)
					}
				})
				all.Go(func() {
					s, err := box.Open(ctx)
					if err != nil {
						return
					}
					s.Close()
				})
				all.Go(func() {
					conn, err := box.Dial(ctx, "tcp", "127.0.0.1:1")
					if err == nil {
						conn.Close()
						t.Error("Dial reached a port on which nothing listens")
					}
				})
			}
			for range 5 {
				r, err = session.Execute(ctx, "read x", sandbox.Timeout(30*time.Second))
				noError(t, err)
				require.Equal(t, sandbox.Waiting, r.State)
				r, err = session.Input(ctx, "\n")
				noError(t, err)
				require.Zero(t, r.ExitCode)
			}
			all.Wait()
			expect(t, box, "kill "+pids, 0, "")
			expect(t, session, "expr 1 + 1", 0, "2\n")
		})
	}
}
