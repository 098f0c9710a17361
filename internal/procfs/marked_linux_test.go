package procfs

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A process that keeps executing programs is found at any moment.
func TestMarkedDuringExec(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec "+script+"\n"), 0o700))
	mark := "SANDSHELL_TEST=" + rand.Text()
	cmd := exec.Command(script)
	cmd.Env = append(os.Environ(), mark)
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for range 100 {
		require.Equal(t, []int{cmd.Process.Pid}, Marked(mark))
	}
}

// markedTree returns a process of an earlier result that has lost its mark, as a process does that
// is ending. This one executes a program without the mark.
func TestMarkedTree(t *testing.T) {
	mark := "SANDSHELL_TEST=" + rand.Text()
	cmd := exec.Command("sh", "-c", "read line; exec env -i sleep 1000")
	cmd.Env = append(os.Environ(), mark)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	marked := markedTree(mark, nil)
	require.Len(t, marked, 1)
	require.Equal(t, cmd.Process.Pid, marked[0].PID)

	_, err = io.WriteString(stdin, "\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return len(markedTree(mark, nil)) == 0
	}, testenv.Limit, time.Millisecond)
	require.Len(t, markedTree(mark, marked), 1)
	stranger := marked[0]
	stranger.Start++
	require.Empty(t, markedTree(mark, []proc.Process{stranger}))

	require.NoError(t, cmd.Process.Kill())
	// a zombie is not returned
	require.Eventually(t, func() bool {
		return len(markedTree(mark, marked)) == 0
	}, testenv.Limit, time.Millisecond)
	cmd.Wait()
	require.Empty(t, markedTree(mark, marked))
}

// EndMarked ends marked processes and their descendants. If they have a grace, they get other
// signals first.
func TestEndMarked(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		want  string
	}{{0, ""}, {20 * time.Second, "ended softly\n"}} {
		mark := "SANDSHELL_TEST=" + rand.Text()
		cmd := exec.Command("sh", "-c",
			`trap "" HUP; trap "echo ended softly; kill \$child; exit" TERM; env -i sleep 1000 & child=$!
echo ready >&2; wait`)
		cmd.Env = append(os.Environ(), mark)
		var out strings.Builder
		cmd.Stdout = &out
		ready, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.ReadFull(ready, make([]byte, len("ready")))
		require.NoError(t, err)
		ended := make(chan struct{})
		go func() { // EndMarked does not count zombies
			defer close(ended)
			cmd.Wait()
		}()
		require.NoError(t, EndMarked(t.Context(), mark, c.grace))
		<-ended
		require.Equal(t, c.want, out.String())
	}
}

// TestEndMarkedRefused checks that EndMarked returns an error if it may not signal a descendant of
// a marked process, even if the marked process has ended, so that the descendant is found no more.
func TestEndMarkedRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start processes of two users")
	}
	const nobody = 65534
	mark := "SANDSHELL_TEST=" + rand.Text()
	// The marked process runs as nobody, and its child as root.
	cmd := exec.Command("sh", "-c", "env -i sleep 1000 & echo $!\n"+
		"exec setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000")
	cmd.Env = append(os.Environ(), mark)
	// Within a session, any process may send SIGCONT to any other.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var child int
	_, err = fmt.Fscan(out, &child)
	require.NoError(t, err)
	defer unix.Kill(child, unix.SIGKILL)
	defer cmd.Process.Kill()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Process.Wait()
	}()
	require.Eventually(t, func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		return err == nil && string(name) == "sleep\n"
	}, testenv.Limit, time.Millisecond)
	got := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine: it stays nobody's
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, no := unix.RawSyscall(call, nobody, nobody, nobody); no != 0 {
				got <- no
				return
			}
		}
		got <- EndMarked(context.Background(), mark, time.Second)
	}()
	err = <-got
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, strconv.Itoa(child))
	<-ended
}
