package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// cancels ends the contexts of calls.
func cancels(t *testing.T, b *box) {
	b.test(t, "Cause", cancelCauses)
	b.test(t, "Before", cancelledBefore)
	cancelledExecutes(t, b)
	// A context governs its call, and not what goes on after the call has returned.
	b.test(t, "After", cancelledAfter)
	// The wait ends, and the command goes on.
	b.test(t, "Wait", func(t *testing.T, sh *shell) {
		running(t, sh.exec("echo one; until [ -e go ]; do sleep 0.02; done; echo two",
			sandbox.Yield(20*time.Millisecond)))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		res, err := within(b, t, "Wait", func(context.Context) (*sandbox.Result, error) {
			return sh.Wait(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, res)
		running(t, res)
		sh.touch("go")
		res = sh.wait()
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "two\n"), show(res))
	})
	b.test(t, "Leave", leaves)
	b.test(t, "ManyTimes", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		for i := range b.suite.count(100) {
			ctx, cancel := context.WithTimeout(context.Background(),
				time.Duration(i%10)*2*time.Millisecond)
			res, err := sh.executeUntil(ctx, "sleep "+string(m))
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Falsef(t, res != nil && res.Restarted, "round %d: %s", i, show(res))
		}
		b.gone(t, m)
	})
}

// leaves ends the contexts of calls that leave the command: it goes on, and Wait returns the rest.
func leaves(t *testing.T, sh *shell) {
	b := sh.b
	for _, c := range []struct {
		name string
		call func(ctx context.Context) (*sandbox.Result, error)
	}{
		{"Execute", func(ctx context.Context) (*sandbox.Result, error) {
			return sh.Execute(ctx, "echo one; until [ -e go ]; do sleep 0.02; done; read x; "+
				"until [ -e on ]; do sleep 0.02; done; echo $x", sandbox.Leave())
		}},
		{"Input", func(ctx context.Context) (*sandbox.Result, error) {
			return sh.Input(ctx, "two\n", sandbox.Leave())
		}},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		res, err := within(b, t, c.name, func(context.Context) (*sandbox.Result, error) {
			return c.call(ctx)
		})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, c.name)
		require.NotNil(t, res, c.name)
		running(t, res)
		if c.name == "Execute" {
			sh.touch("go")
			require.Equal(t, sandbox.Waiting, sh.wait().State)
		}
	}
	sh.touch("on")
	res := sh.wait()
	exited(t, res, 0)
	require.True(t, strings.HasSuffix(res.Output, "two\n"), show(res))
}

// cancelledBefore makes calls with a context that has ended: each returns its error and its cause,
// and does nothing.
func cancelledBefore(t *testing.T, sh *shell) {
	b, files := sh.b, sh.b.Files()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	calls := append(boxCalls(b, sh.dir, t.TempDir()),
		namedCall{"ReadFile", func(ctx context.Context) error {
			return errorOf(files.ReadFile(ctx, "/etc", 0))
		}},
		namedCall{"WriteFile", func(ctx context.Context) error {
			return files.WriteFile(ctx, sh.dir+"/touched", nil, 0o644)
		}})
	for _, c := range sessionCalls(sh) {
		if c.name == "Execute" || c.name == "Resize" || c.name == "Screen" {
			calls = append(calls, c)
		}
	}
	for _, c := range calls {
		_, err := attempt(c.name, noResult(func(context.Context) error { return c.call(ctx) }))
		if !errors.Is(err, errors.ErrUnsupported) {
			require.ErrorIs(t, err, context.Canceled, c.name)
			require.ErrorIs(t, err, why, c.name)
		}
	}
	same(t, "", sh.output("ls"))
}

// cancelCauses cancels calls that wait, with a cause.
func cancelCauses(t *testing.T, sh *shell) {
	b := sh.b
	job := b.start(t, "sleep 1000")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var running sync.WaitGroup
	for _, c := range []namedCall{
		{"Execute", func(ctx context.Context) error {
			return errorOf(sh.Execute(ctx, "sleep 1000"))
		}},
		{"Run", func(ctx context.Context) error {
			return errorOf(b.Run(ctx, &sandbox.Cmd{Args: []string{"sleep", "1000"}}))
		}},
		{"Job.Wait", func(ctx context.Context) error { return errorOf(job.Wait(ctx)) }},
	} {
		running.Go(func() {
			_, err := attempt(c.name, noResult(func(context.Context) error { return c.call(ctx) }))
			if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
				t.Errorf("%s: got %v, want context.Canceled and the context's cause", c.name, err)
			}
		})
	}
	time.AfterFunc(200*time.Millisecond, func() { cancel(why) })
	running.Wait()
}

// cancelledExecutes ends the context of Execute while the command runs.
func cancelledExecutes(t *testing.T, b *box) {
	for _, c := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		want error
	}{
		{"During", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, context.Canceled},
		{"Deadline", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Second)
		}, context.DeadlineExceeded},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			m := b.marker(t)
			ctx, cancel := c.ctx()
			defer cancel()
			res, err := sh.executeUntil(ctx, "echo before; sleep "+string(m))
			require.ErrorIs(t, err, c.want)
			require.NotErrorIs(t, err, sandbox.ErrTimeout)
			require.NotNil(t, res)
			exited(t, res, 130)
			require.True(t, strings.HasPrefix(res.Output, "before\n"), show(res))
			b.gone(t, m)
		})
	}
}

func cancelledAfter(t *testing.T, sh *shell) {
	b := sh.b
	ctx, cancel := context.WithCancel(context.Background())
	execute := func(command string, opts ...sandbox.ExecOption) *sandbox.Result {
		res, err := sh.executeUntil(ctx, command, opts...)
		require.NoError(t, err)
		return res
	}
	exited(t, execute("X=1"), 0)
	running(t, execute("until [ -e go ]; do sleep 0.02; done; echo went $X",
		sandbox.Yield(100*time.Millisecond)))
	job, err := within(b, t, "Background", func(context.Context) (sandbox.Job, error) {
		return b.Background(ctx, "until [ -e go ]; do sleep 0.02; done; exit 5",
			sandbox.Dir(sh.dir))
	})
	require.NoError(t, err)
	other, err := within(b, t, "Open", func(context.Context) (sandbox.Session, error) {
		return b.Open(ctx, sandbox.Dir(sh.dir))
	})
	require.NoError(t, err)
	cancel()
	(&shell{Session: other, b: b, t: t}).output("sleep 0.2; : > go")
	require.NoError(t, other.Close())
	exitedWith(t, sh.wait(), 0, "went 1\n")
	res, err := within(b, t, "Job.Wait", job.Wait)
	require.NoError(t, err)
	exited(t, res, 5)
}

// interrupts calls Interrupt.
func interrupts(t *testing.T, b *box) {
	for _, c := range []struct {
		name, command string
		code          int
	}{
		{"Sleep", "sleep {n}", 130},
		{"Flood", "yes 'one of very many lines'", 130},
		{"FloodOfTheShell", "while :; do echo y; done", 130},
		{"FloodOfOneLine", `tr '\0' x < /dev/zero`, 130},
		{"Read", "read -r x", 130},
		{"Loop", "while :; do :; done", 130},
		{"IgnoresINT", `sh -c 'trap "" INT; sleep {n}; :'`, 143},
		{"IgnoresINTAndTERM", `sh -c 'trap "" INT TERM; sleep {n}; :'`, 137},
		{"FloodThatIgnores", `sh -c 'trap "" INT TERM; echo ready; yes; :'`, 137},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			m := b.marker(t)
			sh.begins(strings.ReplaceAll(c.command, "{n}", string(m)))
			if strings.Contains(c.command, "{n}") {
				b.alive(t, m, 1)
			}
			res := sh.interrupt()
			if b.ashHangs(res, c.name) {
				sh.mayRestart = true
				return
			}
			exited(t, res, c.code)
			b.gone(t, m)
		})
	}
	// The queued input is dropped with the command.
	b.test(t, "QueuedInput", func(t *testing.T, sh *shell) {
		m := sh.sleeps()
		running(t, sh.input(": > stray\necho stray\n", sandbox.Yield(100*time.Millisecond)))
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		sh.lives()
		same(t, "", sh.output("ls"))
	})
	b.test(t, "Idle", func(t *testing.T, sh *shell) {
		for range 3 {
			sh.fails(sandbox.ErrIdle, "Interrupt", sh.interruptCall())
			sh.lives()
		}
	})
	b.test(t, "KeepsTheOutput", func(t *testing.T, sh *shell) {
		running(t, sh.exec("echo one; sleep 0.3; echo two; sleep 1000",
			sandbox.Yield(100*time.Millisecond)))
		running(t, sh.wait(sandbox.Yield(600*time.Millisecond)))
		exited(t, sh.interrupt(), 130)
	})
}
