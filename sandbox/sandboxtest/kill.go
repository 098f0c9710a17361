package sandboxtest

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func kills(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs string }{
		{"Simple", "sleep {n}", ""},
		{"Children", "sh -c 'sleep {n} & sleep {n} & wait'", ""},
		{"Background", "sleep {n} & sleep {n} & wait", ""},
		{"Ignoring", `trap "" INT TERM HUP; sh -c 'sleep {n}; :'; sleep {n}`, ""},
		{"GroupsOfTheirOwn", `sh -c 'setsid sleep {n} & setsid sh -c "sleep {n}; :" & wait'`,
			"setsid"},
		{"Forks", `sh -c 'while :; do sh -c "sleep {n}; :" & sleep 0.05; done'`, ""},
		{"Stopped", `sh -c 'sleep {n} & kill -STOP $!; wait'`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			m := b.marker(t)
			j := b.start(t, strings.ReplaceAll(c.command, "{n}", string(m)))
			b.alive(t, m, min(2, strings.Count(c.command, "{n}")))
			j.kill()
			b.gone(t, m)
			j.ends(129, 137, 143)
			j.kill() // again: nothing
		})
	}
	// the kernel calls such a process a zombie, and shows no arguments
	t.Run("MainThreadEnded", func(t *testing.T) {
		t.Parallel()
		b.need(t, "python3")
		sh := b.open(t)
		dir := strings.TrimSpace(sh.output("pwd"))
		j := b.start(t, `python3 -c 'import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
open("pid", "w").write(str(os.getpid()))
ctypes.CDLL(None).pthread_exit(None)'`, sandbox.Dir(dir))
		exited(t, sh.exec("until grep -s 'State:.*Z' /proc/$(cat pid)/status; do sleep 0.02; done"),
			0)
		j.kill()
		exited(t, sh.exec("! grep -s 'Threads:.*2' /proc/$(cat pid)/status"), 0)
	})
	t.Run("Ended", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "exit 3")
		j.ends(3)
		j.kill()
		j.ends(3)
	})
	t.Run("FromTwoGoroutines", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m))
		b.alive(t, m, 1)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := attempt("Kill", empty(func(ctx context.Context) error {
					return j.Kill(ctx)
				}))
				errs <- err
			}()
		}
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		b.gone(t, m)
	})
	// before the shell has been given the command, or has taken it
	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		var all sync.WaitGroup
		for range 8 {
			j := b.start(t, "sleep "+string(m))
			all.Go(j.kill)
		}
		all.Wait()
		b.gone(t, m)
	})
	t.Run("LeavesOthers", func(t *testing.T) {
		t.Parallel()
		m, other := b.marker(t), b.marker(t)
		j, k := b.start(t, "sleep "+string(m)), b.start(t, "sleep "+string(other))
		sh := b.open(t)
		b.alive(t, m, 1)
		b.alive(t, other, 1)
		j.kill()
		b.gone(t, m)
		require.NotEmpty(t, b.processes(t, other))
		k.kill()
		b.gone(t, other)
		sh.lives()
	})
}

func signals(t *testing.T, b *box) {
	t.Parallel()
	signal := func(t *testing.T, j *job, sig syscall.Signal) error {
		t.Helper()
		_, err := within(b, t, "Signal", empty(func(ctx context.Context) error {
			return j.Signal(ctx, sig)
		}))
		return err
	}
	for _, c := range []struct {
		name string
		sig  syscall.Signal
		code int
	}{{"INT", syscall.SIGINT, 130}, {"TERM", syscall.SIGTERM, 143}, {"KILL", syscall.SIGKILL, 137},
		{"HUP", syscall.SIGHUP, 129}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := b.marker(t)
			// What a dash gets while it forks (vfork) is lost on the child, and waits in the parent
			// for the child's end.
			j := b.start(t, `sh -c 'sh -c "echo up; exec sleep `+string(m)+`"; :'`)
			j.shown("up\n")
			require.NoError(t, signal(t, j, c.sig))
			j.ends(c.code)
			// Each process dies of the signal in its own time: the job has ended with the first.
			b.eventually(t, func() bool {
				return len(b.processes(t, m)) == 0
			}, "the end of all that the signal was sent to")
			for range 3 { // never another process's death
				require.ErrorIs(t, signal(t, j, c.sig), os.ErrProcessDone)
			}
		})
	}
	t.Run("Caught", func(t *testing.T) {
		t.Parallel()
		j := b.start(t,
			`sh -c 'trap "echo caught; exit 9" HUP; echo ready; while :; do sleep 0.05; done'`)
		j.shown("ready\n")
		require.NoError(t, signal(t, j, syscall.SIGHUP))
		require.Contains(t, j.ends(9).Output, "caught\n")
	})
}
