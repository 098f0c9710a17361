package processes_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
)

// A scripted is a host whose processes change from look to look. The last look stays.
type scripted struct {
	hostapi.Processes
	looks [][]proc.Process
	sent  []string
}

func (s *scripted) Tree(ctx context.Context, roots ...int) ([]proc.Process, error) {
	now := s.looks[0]
	if len(s.looks) > 1 {
		s.looks = s.looks[1:]
	}
	return still{tree: now}.Tree(ctx, roots...)
}

func (s *scripted) Signal(_ context.Context, pids []int, signals ...proc.Signal) (int, error) {
	s.sent = append(s.sent, fmt.Sprint(pids, signals))
	return len(pids) * len(signals), nil
}

const (
	interrupt  = 1 << (2 - 1)
	terminate  = 1 << (15 - 1)
	bash, prog = "bash's", "a program's"
)

// aProcess returns a process of the foreground group 20. The shell is 10.
func aProcess(pid, parent int, image, state string, caught, blocked uint32) proc.Process {
	return proc.Process{PID: pid, Parent: parent, Group: 20, Foreground: 20, Session: 10, TTY: 1,
		Image: image, State: state, Caught: caught, Blocked: blocked, Start: int64(pid)}
}

// theShell returns the shell, and ps.
func theShell(ps ...proc.Process) []proc.Process {
	shell := aProcess(10, 1, bash, "S", 0, 0)
	shell.Group = 10
	return append([]proc.Process{shell}, ps...)
}

// TestSignalWhileForking checks that a shell with a trap gets the signal although it has no handler
// while it forks, and that one without a trap does not, as its program may have a handler.
func TestSignalWhileForking(t *testing.T) {
	for caught, sent := range map[uint32]string{
		terminate: "[20 30] [15]",
		0:         "[30] [15]",
	} {
		synctest.Test(t, func(t *testing.T) {
			forking := theShell(aProcess(20, 10, bash, "R", 0, terminate),
				aProcess(30, 20, bash, "R", 0, terminate))
			h := &scripted{looks: [][]proc.Process{forking, forking,
				theShell(aProcess(20, 10, bash, "S", caught, 0),
					aProcess(30, 20, prog, "S", 0, 0))}}
			_, err := processes.New(h, nil, slog.Default()).SignalForeground(10, true, "15")
			require.NoError(t, err)
			require.Equal(t, []string{sent}, h.sent)
		})
	}
}

// TestFollowInterrupt checks that a bash that begins one short program after the other gets SIGINT
// while a program that dies of it is stopped: it would drop the signal if the program ended by
// itself.
func TestFollowInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := aProcess(20, 10, bash, "S", interrupt, 0)
		running := func(pid int, image, state string) []proc.Process {
			return theShell(loop, aProcess(pid, 20, image, state, 0, 0))
		}
		h := &scripted{looks: [][]proc.Process{
			running(30, prog, "S"),
			theShell(loop),         // between two programs
			running(31, bash, "R"), // a fork that has executed nothing yet
			running(32, prog, "S"), // is stopped,
			theShell(loop),         // but had ended
			running(33, prog, "S"), // is stopped,
			running(33, prog, "R"), // is being stopped,
			running(33, prog, "T"), // has stopped
			theShell(),             // the loop has ended
		}}
		f, err := processes.New(h, nil, slog.Default()).SignalForeground(10, true, "2")
		require.NoError(t, err)
		f.Follow(t.Context().Done())
		require.Equal(t, []string{"[30] [2]", "[32] [STOP]", "[32] [CONT]", "[33] [STOP]",
			"[20 33] [2]", "[33] [CONT]"}, h.sent)
	})
}

// TestFollowBuiltin checks that a bash that runs no program gets SIGINT when it has run none for
// some looks.
func TestFollowBuiltin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &scripted{looks: [][]proc.Process{theShell(aProcess(20, 10, bash, "R", interrupt, 0))}}
		f, err := processes.New(h, nil, slog.Default()).SignalForeground(10, true, "2")
		require.NoError(t, err)
		require.Empty(t, h.sent)
		f.Follow(t.Context().Done())
		require.Equal(t, []string{"[20] [2]"}, h.sent)
	})
}
