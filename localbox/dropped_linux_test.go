package localbox_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// lateInterrupts is a program that asks, as one with a pinentry does: by a process of another
// session. When the program has ended, that one interrupts the shell for a twentieth of a second.
const lateInterrupts = `
import ctypes, os, signal, sys, time, tty
shell, terminal = int(sys.argv[1]), os.open(os.ttyname(0), os.O_RDWR)
def late(*_):
    end = time.monotonic() + 0.05
    while time.monotonic() < end: os.kill(shell, signal.SIGINT)
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGUSR1, late)
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGUSR1) # when its parent ends
    tty.setraw(terminal)
    while os.read(terminal, 1): pass
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.waitpid(pid, 0)
`

// TestLateInterrupts checks that a shell that has dropped the question whether it is back is asked
// again soon, although some process still reads its terminal. By the steps against a command, of
// which the last asks too, it would take three minutes.
func TestLateInterrupts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("apt-get install python3: ", err)
	}
	box, err := localbox.New(t.Context(), localbox.Config{Grace: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	res, err := box.Execute(ctx, "mark=set; python3 -c '"+lateInterrupts+"' $$")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, res.State, "%+v", res)
	res, err = box.Interrupt(ctx)
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, res.State)
	require.Equal(t, 130, res.ExitCode)
	require.False(t, res.Restarted)
	res, err = box.Execute(ctx, "echo $mark")
	require.NoError(t, err)
	require.Equal(t, "set\n", res.Output)
}
