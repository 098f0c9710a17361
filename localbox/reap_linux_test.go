package localbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/localbox"
)

// TestReapedProgram is the program that TestReap starts and kills.
func TestReapedProgram(t *testing.T) {
	if os.Getenv("SANDSHELL_TEST_REAPED") == "" {
		t.Skip("TestReap starts it")
	}
	box, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	r, err := box.Execute(t.Context(),
		`trap "" HUP; sleep 1000 & echo $!; (setsid nohup sleep 1000 >/dev/null 2>&1 & echo $!)`)
	require.NoError(t, err)
	fmt.Println("ready", box.Dir(), strings.ReplaceAll(r.Output, "\n", " "))
	os.Stdin.Read(make([]byte, 1))
}

// TestReap checks that Reap ends what a killed program has left: its boxes' directories, and
// processes that ignore the end of their terminal. Boxes of live programs stay.
func TestReap(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	mine := open(t, localbox.Config{})
	_, err := mine.Execute(t.Context(), "X=1; touch file; sleep 1000 &")
	require.NoError(t, err)

	cmd := exec.Command(os.Args[0], "-test.run=^TestReapedProgram$", "-test.v")
	cmd.Env = append(os.Environ(), "SANDSHELL_TEST_REAPED=1")
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var dir string
	var pids []int
	for lines := bufio.NewScanner(stdout); dir == "" && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 2 && words[0] == "ready" {
			dir = words[1]
			for _, word := range words[2:] {
				if pid, err := strconv.Atoi(word); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	pids = slices.Compact(pids) // bash also prints the first one
	require.Len(t, pids, 2)
	n, err := localbox.Reap(t.Context())
	require.NoError(t, err)
	require.Zero(t, n, "its program runs")
	require.DirExists(t, dir)

	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = localbox.Reap(canceled)
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { // this Reap ends what the cancelled one has begun
		n, err = localbox.Reap(t.Context())
		return err != nil || n > 0
	}, testenv.Limit, 10*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoDirExists(t, filepath.Dir(dir))
	// The cancelled Reap may have killed a process that is still ending. Such a process has no
	// environment, and so no mark: no other Reap waits for it.
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(procfs.Alive(pids...), func(p proc.Process) bool {
			return !p.Ended()
		})
	}, testenv.Limit, time.Millisecond)
	r, err := mine.Execute(t.Context(), `echo $X; ls; jobs | grep -c Running`)
	require.NoError(t, err)
	require.Equal(t, "1\nfile\n1\n", r.Output)

	// Reap refuses a bad mark.
	bad := filepath.Join(temp, "sandshell-local-bad")
	require.NoError(t, os.Mkdir(bad, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bad, "mark"), []byte("PATH="), 0o600))
	_, err = localbox.Reap(t.Context())
	require.ErrorContains(t, err, bad)
}
