//go:build linux

package shellbox_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A distant place is a chamber whose programs get their input a while later, as behind a slow
// connection.
type distant struct{ chamber }

const distance = 100 * time.Millisecond

func (d distant) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	started, err := d.chamber.Start(ctx, p)
	if err != nil || p.Terminal == nil {
		return started, err
	}
	return far{started}, nil
}

type far struct{ shellbox.Process }

func (f far) Stdin() io.WriteCloser { return later{f.Process.Stdin()} }

type later struct{ io.WriteCloser }

func (l later) Write(b []byte) (int, error) {
	text := append([]byte(nil), b...)
	// a program that has ended gets nothing
	time.AfterFunc(distance, func() { l.WriteCloser.Write(text) })
	return len(b), nil
}

// A program that has waited, and to which the answer is still on its way, is not reported as
// waiting again, even if something was printed after its question.
func TestAnswerUnderWay(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	box, err := shellbox.New(ctx, distant{chamber{by: []string{"/usr/bin/nice"}}},
		shellbox.Options{Dir: dir, Shell: []string{"bash"}})
	require.NoError(t, err)
	defer box.Close()
	// The end of its background process wakes the shell that reads.
	r, err := box.Execute(ctx, "mkfifo go; { read -r x; echo note; } <>go & read -r x; echo got "+
		"$x; read -r y; echo got $y; read -r z")
	for _, answer := range []string{"a", "b"} {
		require.NoError(t, err)
		require.Equal(t, sandbox.Waiting, r.State)
		if answer == "a" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0))
			require.Eventually(t, func() bool {
				screen, err := box.Screen(ctx)
				return err == nil && strings.Contains(strings.Join(screen.Lines, "\n"), "note")
			}, testenv.Limit, time.Millisecond)
		}
		r, err = box.Input(ctx, answer+"\n")
		require.NoError(t, err)
		require.Contains(t, r.Output, "got "+answer)
	}
}
