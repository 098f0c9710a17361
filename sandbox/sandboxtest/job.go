package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A job is a background job under test.
type job struct {
	sandbox.Job
	b *box
	t testing.TB
}

// start calls Background, in the directory for cases.
func (b *box) start(t testing.TB, command string, opts ...sandbox.SessionOption) *job {
	t.Helper()
	j, err := b.tryBackground(t, command,
		append([]sandbox.SessionOption{sandbox.Dir(b.tmp)}, opts...)...)
	require.NoErrorf(t, err, "Background(%s)", brief(command))
	t.Cleanup(func() { attempt("Kill", noResult(j.Kill)) })
	return &job{j, b, t}
}

// tryBackground calls Background.
func (b *box) tryBackground(t testing.TB, command string,
	opts ...sandbox.SessionOption) (sandbox.Job, error) {
	t.Helper()
	return within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
		return b.Background(ctx, command, opts...)
	})
}

// logs calls Logs.
func (j *job) logs(offset int64) (string, int64) {
	j.t.Helper()
	var next int64
	data, err := within(j.b, j.t, "Logs", func(ctx context.Context) (data []byte, err error) {
		data, next, err = j.Logs(ctx, offset)
		return data, err
	})
	require.NoErrorf(j.t, err, "Logs(%d)", offset)
	require.Equalf(j.t, offset+int64(len(data)), next, "next of Logs(%d), which returned %d bytes",
		offset, len(data))
	return string(data), next
}

// shown waits until the logs hold text, and returns them.
func (j *job) shown(text string) (all string) {
	j.t.Helper()
	j.b.eventually(j.t, func() bool {
		all, _ = j.logs(0)
		return strings.Contains(all, text)
	}, "%q in the logs of %s", text, j.Command())
	return all
}

// ends calls Wait for a job that ends with one of codes.
func (j *job) ends(codes ...int) *sandbox.Result {
	j.t.Helper()
	res, err := within(j.b, j.t, "Job.Wait", j.Wait)
	require.NoError(j.t, err, "Wait")
	require.Equalf(j.t, sandbox.Exited, res.State, "%s", show(res))
	require.Containsf(j.t, codes, res.ExitCode, "%s", show(res))
	if len(res.Output) < 1000 {
		require.Zerof(j.t, res.Omitted, "Omitted: %s", show(res))
	}
	select {
	case <-j.Done():
	default:
		j.t.Fatal("Done is not closed, though Wait has returned")
	}
	return res
}

// isDone waits until Done is closed.
func (j *job) isDone() {
	j.t.Helper()
	select {
	case <-j.Done():
	case <-time.After(grace):
		j.t.Fatalf("Done is not closed after %v", grace)
	}
}

// kill calls Kill.
func (j *job) kill() {
	j.t.Helper()
	_, err := within(j.b, j.t, "Kill", noResult(j.Kill))
	require.NoError(j.t, err, "Kill")
}

// input calls Input.
func (j *job) input(text string) error {
	j.t.Helper()
	_, err := within(j.b, j.t, "Job.Input", noResult(func(ctx context.Context) error {
		return j.Input(ctx, text)
	}))
	return err
}

// follow reads the logs until the job has ended.
func (j *job) follow() (string, error) {
	var all strings.Builder
	var offset int64
	for ended := false; ; {
		data, next, err := j.Logs(context.Background(), offset)
		all.Write(data)
		if err != nil || len(data) == 0 && ended {
			return all.String(), err
		}
		offset = next
		select {
		case <-j.Done():
			ended = true
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// logs reads the logs of jobs.
func logs(t *testing.T, b *box) {
	parallel(t, "WhileItWritesAndAfter", func(t *testing.T) {
		j := b.start(t, "i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo line $i; [ $((i % 30)) "+
			"= 0 ] && sleep 0.05; done; exit 3")
		want := repeat("line %d\n", 300)
		require.NoError(t, together(3, func(i int) error {
			time.Sleep(time.Duration(i) * 20 * time.Millisecond) // each is at another offset
			got, err := j.follow()
			if err == nil && got != want {
				err = errors.New(firstDifference(want, got))
			}
			return err
		}))
		same(t, want, j.ends(3).Output)
		for range 2 {
			all, next := j.logs(0)
			same(t, want, all)
			for offset, text := range map[int64]string{next: "", next - 9: "line 300\n",
				7: want[7:]} {
				data, _ := j.logs(offset)
				same(t, text, data)
			}
		}
	})
	parallel(t, "NothingNewDoesNotWait", func(t *testing.T) {
		m := b.marker(t)
		j := b.start(t, "echo ready; sleep "+string(m))
		data, _ := j.logs(int64(len(j.shown("ready\n"))))
		require.Empty(t, data)
		j.kill()
		b.gone(t, m)
	})
	parallel(t, "BeyondTheEnd", func(t *testing.T) {
		j := b.start(t, "echo a")
		j.ends(0)
		for _, offset := range []int64{3, 1 << 40, -1} {
			_, err := within(b, t, "Logs", func(ctx context.Context) ([]byte, error) {
				data, _, err := j.Logs(ctx, offset)
				return data, err
			})
			require.Errorf(t, err, "Logs(%d) of 2 bytes", offset)
		}
	})
	parallel(t, "Raw", func(t *testing.T) {
		j := b.start(t, `printf '\033[31mred\033[0m\r50%%\r100%%\n\377\376\n'; printf 'no end'`)
		res := j.ends(0)
		all, _ := j.logs(0)
		same(t, "\x1b[31mred\x1b[0m\r50%\r100%\n\xff\xfe\nno end", all)
		same(t, "100%\n\ufffd\nno end", res.Output)
	})
	parallel(t, "AtMostAMebibyte", func(t *testing.T) {
		j := b.start(t, `head -c 3000000 /dev/zero | tr '\0' x`)
		j.ends(0)
		data, _ := j.logs(0)
		require.LessOrEqual(t, len(data), 1<<20)
		require.NotEmpty(t, data)
	})
}

// unread prints much before anyone reads the logs. The job is not stopped.
func unread(t *testing.T, b *box) {
	n := b.suite.count(100_000_000)
	j := b.start(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo end`, n))
	res := j.ends(0)
	require.True(t, strings.HasSuffix(res.Output, "xend\n"), show(res))
	require.EqualValues(t, n+4, int64(len(res.Output))+res.Omitted, "bytes kept and omitted")
	var offset, size int64
	for {
		data, next := j.logs(offset)
		if len(data) == 0 {
			break
		}
		size += int64(len(data))
		if rest := strings.TrimLeft(data, "x"); rest != "" {
			require.Equal(t, "end\n", rest, "at offset %d", offset)
		}
		offset = next
	}
	require.EqualValues(t, n+4, size, "bytes of the logs")
}

// jobInput types to jobs.
func jobInput(t *testing.T, b *box) {
	parallel(t, "Answered", func(t *testing.T) {
		j := b.start(t, `printf 'name? '; read -r x; echo "got $x"; exit 3`)
		j.shown("name? ")
		require.NoError(t, j.input("ann\n"))
		same(t, "name? ann\ngot ann\n", j.ends(3).Output)
		require.ErrorIs(t, j.input("x\n"), sandbox.ErrIdle)
	})
	parallel(t, "OnATerminal", func(t *testing.T) {
		b.start(t, "[ -t 0 ] && [ -t 1 ] && [ -t 2 ]").ends(0)
	})
	parallel(t, "Keys", func(t *testing.T) {
		j := b.start(t, "echo ready; exec cat")
		j.shown("ready\n")
		for _, text := range []string{"one\n", "two\n", "\x04"} {
			require.NoError(t, j.input(text))
		}
		out := j.ends(0).Output
		require.Equal(t, 2, strings.Count(out, "one\n"), "echo and answer: %s", brief(out))
		require.Equal(t, 2, strings.Count(out, "two\n"), "echo and answer: %s", brief(out))
	})
}

// kills kills jobs.
func kills(t *testing.T, b *box) {
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
		parallel(t, c.name, func(t *testing.T) {
			b.need(t, c.needs)
			m := b.marker(t)
			j := b.start(t, strings.ReplaceAll(c.command, "{n}", string(m)))
			b.alive(t, m, min(2, strings.Count(c.command, "{n}")))
			j.kill()
			b.gone(t, m)
			j.ends(129, 137, 143)
			j.kill() // does nothing
		})
	}
	// In /proc, such a process is a zombie without arguments.
	b.test(t, "MainThreadEnded", func(t *testing.T, sh *shell) {
		b.need(t, "python3")
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
	parallel(t, "Ended", func(t *testing.T) {
		j := b.start(t, "exit 3")
		j.ends(3)
		j.kill()
		j.ends(3)
	})
	parallel(t, "FromTwoGoroutines", func(t *testing.T) {
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m))
		b.alive(t, m, 1)
		require.NoError(t, together(2, func(int) error {
			return errorOf(attempt("Kill", noResult(j.Kill)))
		}))
		b.gone(t, m)
	})
	// Kill comes before the shell has got the command, or has started it.
	parallel(t, "AtOnce", func(t *testing.T) {
		m := b.marker(t)
		var all sync.WaitGroup
		for range 8 {
			j := b.start(t, "sleep "+string(m))
			all.Go(j.kill)
		}
		all.Wait()
		b.gone(t, m)
	})
	b.test(t, "LeavesOthers", func(t *testing.T, sh *shell) {
		m, other := b.marker(t), b.marker(t)
		j, k := b.start(t, "sleep "+string(m)), b.start(t, "sleep "+string(other))
		b.alive(t, m, 1)
		b.alive(t, other, 1)
		j.kill()
		b.gone(t, m)
		require.NotEmpty(t, b.processes(t, other))
		k.kill()
		b.gone(t, other)
	})
}

// signals sends signals to jobs.
func signals(t *testing.T, b *box) {
	signal := func(t *testing.T, j *job, sig syscall.Signal) error {
		t.Helper()
		_, err := within(b, t, "Signal", noResult(func(ctx context.Context) error {
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
		parallel(t, c.name, func(t *testing.T) {
			m := b.marker(t)
			// A signal that dash gets in its vfork is dropped in the child, and pending in the
			// parent until the child ends. This command prints "up" after the forks.
			j := b.start(t, `sh -c 'sh -c "echo up; exec sleep `+string(m)+`"; :'`)
			j.shown("up\n")
			require.NoError(t, signal(t, j, c.sig))
			j.ends(c.code)
			// the job has ended with its shell: the other processes may end later
			b.ended(t, m, "all that the signal was sent to")
			for range 3 { // the process ID may be another process's
				require.ErrorIs(t, signal(t, j, c.sig), os.ErrProcessDone)
			}
		})
	}
	for _, c := range []struct {
		name, command string
		sig           syscall.Signal
		code          int
		output        string
	}{
		{"Loop", "echo ready; while :; do sleep 0.01; done", syscall.SIGTERM, 143, ""},
		{"Subshell", "(echo ready; while :; do sleep 0.01; done)", syscall.SIGTERM, 143, ""},
		{"Builtin", "echo ready; while :; do :; done", syscall.SIGTERM, 143, ""},
		{"Trap", "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.01; done",
			syscall.SIGTERM, 9, "caught\n"},
		{"TrapINT", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.01; done",
			syscall.SIGINT, 9, "caught\n"},
		{"SubshellTrap", "(trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.01; " +
			"done); echo then $?", syscall.SIGTERM, 0, "caught\nthen 9\n"},
		{"TrapSleep", "trap 'echo caught; exit 9' TERM; echo ready; sleep 0.5", syscall.SIGTERM, 9,
			"caught\n"},
		{"Graceful", `sh -c 'trap "sleep 0.1; echo caught; exit 9" TERM; echo ready; ` +
			`while :; do sleep 0.01; done'`, syscall.SIGTERM, 9, "caught\n"},
		{"Next", `sh -c 'echo ready; exec sleep 1000'; sleep 1000`, syscall.SIGTERM, 143, ""},
	} {
		parallel(t, c.name, func(t *testing.T) {
			j := b.start(t, c.command)
			j.shown("ready\n")
			require.NoError(t, signal(t, j, c.sig))
			require.Contains(t, j.ends(c.code).Output, c.output)
		})
	}
	parallel(t, "AtOnce", func(t *testing.T) {
		for range 5 {
			j := b.start(t, "while :; do sleep 0.01; done") // may not have begun
			require.NoError(t, signal(t, j, syscall.SIGTERM))
			j.ends(143)
		}
	})
	parallel(t, "Caught", func(t *testing.T) {
		j := b.start(t,
			`sh -c 'trap "echo caught; exit 9" HUP; echo ready; while :; do sleep 0.05; done'`)
		j.shown("ready\n")
		require.NoError(t, signal(t, j, syscall.SIGHUP))
		require.Contains(t, j.ends(9).Output, "caught\n")
	})
}
