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

func cancels(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Before", func(t *testing.T) {
		t.Parallel()
		sh, files := b.open(t), b.Files()
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		for name, call := range map[string]func() error{
			"Execute": func() error { _, err := sh.Execute(ctx, ": > touched"); return err },
			"Open":    func() error { _, err := b.Open(ctx); return err },
			"Background": func() error {
				_, err := b.Background(ctx, ": > touched", sandbox.Dir(sh.dir))
				return err
			},
			"Run": func() error {
				_, err := b.Run(ctx, &sandbox.Cmd{Args: []string{"touch", "touched"}, Dir: sh.dir})
				return err
			},
			"CopyTo":   func() error { return b.CopyTo(ctx, t.TempDir(), sh.dir+"/touched") },
			"CopyFrom": func() error { return b.CopyFrom(ctx, sh.dir, t.TempDir()+"/copy") },
			"Dial":     func() error { _, err := b.Dial(ctx, "tcp", "127.0.0.1:1"); return err },
			"Listen":   func() error { _, err := b.Listen(ctx, "tcp", "127.0.0.1:0"); return err },
			"ReadFile": func() error { _, err := files.ReadFile(ctx, "/etc", 0); return err },
			"WriteFile": func() error {
				return files.WriteFile(ctx, sh.dir+"/touched", nil, 0o644)
			},
			"Resize": func() error { return sh.Resize(ctx, 10, 10) },
			"Screen": func() error { _, err := sh.Screen(ctx); return err },
		} {
			_, err := attempt(name, empty(func(context.Context) error { return call() }))
			if !errors.Is(err, errors.ErrUnsupported) {
				require.ErrorIs(t, err, context.Canceled, name)
				require.ErrorIs(t, err, why, name)
			}
		}
		same(t, "", sh.output("ls"))
		sh.lives()
	})
	t.Run("Cause", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		job := b.start(t, "sleep 1000")
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		var running sync.WaitGroup
		for name, call := range map[string]func() error{
			"Execute": func() error { _, err := sh.Execute(ctx, "sleep 1000"); return err },
			"Run": func() error {
				_, err := b.Run(ctx, &sandbox.Cmd{Args: []string{"sleep", "1000"}})
				return err
			},
			"Job.Wait": func() error { _, err := job.Wait(ctx); return err },
		} {
			running.Go(func() {
				_, err := attempt(name, empty(func(context.Context) error { return call() }))
				if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		time.AfterFunc(200*time.Millisecond, func() { cancel(why) })
		running.Wait()
		sh.lives()
	})
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
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			m := b.marker(t)
			ctx, cancel := c.ctx()
			defer cancel()
			res, err := within(b, t, "Execute", func(context.Context) (*sandbox.Result, error) {
				return sh.Execute(ctx, "echo before; sleep "+string(m))
			})
			require.ErrorIs(t, err, c.want)
			require.False(t, errors.Is(err, sandbox.ErrTimeout),
				"a context's end is not ErrTimeout")
			require.NotNil(t, res)
			exited(t, res, 130)
			require.True(t, strings.HasPrefix(res.Output, "before\n"), show(res))
			b.gone(t, m)
			sh.lives()
		})
	}
	// a context governs its call, not what goes on when it has returned
	t.Run("After", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		ctx, cancel := context.WithCancel(context.Background())
		background := func(command string, opts ...sandbox.ExecOption) *sandbox.Result {
			res, err := within(b, t, "Execute", func(context.Context) (*sandbox.Result, error) {
				return sh.Execute(ctx, command, opts...)
			})
			require.NoError(t, err)
			return res
		}
		exited(t, background("X=1"), 0)
		running(t, background("until [ -e go ]; do sleep 0.02; done; echo went $X",
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
		res := sh.wait()
		exited(t, res, 0)
		same(t, "went 1\n", res.Output)
		res, err = within(b, t, "Job.Wait", job.Wait)
		require.NoError(t, err)
		exited(t, res, 5)
		sh.lives()
	})
	t.Run("Wait", func(t *testing.T) { // ends the waiting, not the command
		t.Parallel()
		sh := b.open(t)
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
		b.script(t, `: > "$1"`, sh.dir+"/go")
		res = sh.wait()
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "two\n"), show(res))
		sh.lives()
	})
	t.Run("ManyTimes", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		for i := range b.suite.count(100) {
			ctx, cancel := context.WithTimeout(context.Background(),
				time.Duration(i%10)*2*time.Millisecond)
			res, err := within(b, t, "Execute", func(context.Context) (*sandbox.Result, error) {
				return sh.Execute(ctx, "sleep "+string(m))
			})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.False(t, res != nil && res.Restarted, "round %d", i)
		}
		b.gone(t, m)
		sh.lives()
	})
}

func interrupts(t *testing.T, b *box) {
	t.Parallel()
	type interrupted struct {
		name, command string
		codes         []int
	}
	cases := []interrupted{
		{"Sleep", "sleep {n}", []int{130}},
		{"Flood", "yes 'one of very many lines'", []int{130}},
		{"FloodOfTheShell", "while :; do echo y; done", []int{130}},
		{"FloodOfOneLine", `tr '\0' x < /dev/zero`, []int{130}},
		{"Read", "read -r x", []int{130}},
		{"Loop", "while :; do :; done", []int{130}},
		{"IgnoresINT", `sh -c 'trap "" INT; sleep {n}; :'`, []int{143}},
		{"IgnoresINTAndTERM", `sh -c 'trap "" INT TERM; sleep {n}; :'`, []int{137}},
		{"FloodThatIgnores", `sh -c 'trap "" INT TERM; echo ready; yes; :'`, []int{137}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			m := b.marker(t)
			sh.begins(strings.ReplaceAll(c.command, "{n}", string(m)))
			if strings.Contains(c.command, "{n}") {
				b.alive(t, m, 1)
			}
			res := sh.interrupt()
			if b.ashHangs(res, c.name) {
				sh.usable()
				return
			}
			exited(t, res, c.codes...)
			b.gone(t, m)
			sh.lives()
		})
	}
	t.Run("QueuedInput", func(t *testing.T) { // goes with the command
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(100*time.Millisecond)))
		running(t, sh.input(": > stray\necho stray\n", sandbox.Yield(100*time.Millisecond)))
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		sh.lives()
		same(t, "", sh.output("ls"))
	})
	t.Run("Idle", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		for range 3 {
			sh.fails(sandbox.ErrIdle, "Interrupt", sh.interrupts())
			sh.lives()
		}
	})
	t.Run("KeepsTheOutput", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		running(t, sh.exec("echo one; sleep 0.3; echo two; sleep 1000",
			sandbox.Yield(100*time.Millisecond)))
		running(t, sh.wait(sandbox.Yield(600*time.Millisecond)))
		exited(t, sh.interrupt(), 130)
		sh.lives()
	})
}
