package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// sharedCommand: several calls about one command, each with its own options.
func sharedCommand(t *testing.T, b *box) {
	t.Parallel()
	const ticking = "until [ -e go ]; do echo tick; sleep 0.02; done; echo one; echo two; echo " +
		"three; (exit 3)"
	type answer struct {
		res *sandbox.Result
		err error
	}
	for _, c := range []struct {
		name   string
		untils []string // of the Waits; "": none
	}{
		{"UntilAndNone", []string{"two\n", ""}},
		{"TwoUntils", []string{"one\n", "two\n"}},
		{"TheSameUntil", []string{"two\n", "two\n"}},
		{"Three", []string{"", "one\n", "three\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			running(t, sh.exec(ticking, sandbox.Yield(50*time.Millisecond)))
			answers := make([]answer, len(c.untils))
			tees := make([]strings.Builder, len(c.untils))
			var all, listening sync.WaitGroup
			for i, until := range c.untils {
				opts := []sandbox.ExecOption{sandbox.Tee(&firstWrite{w: &tees[i],
					seen: sync.OnceFunc(listening.Done)})}
				if until != "" {
					opts = append(opts, sandbox.Until(regexp.MustCompile(until)))
				}
				listening.Add(1)
				all.Go(func() {
					answers[i].res, answers[i].err = attempt("Wait", sh.waits(opts...))
				})
			}
			listening.Wait()
			b.script(t, `: > "$1"`, sh.dir+"/go")
			all.Wait()
			ended := false
			for i, until := range c.untils {
				require.NoErrorf(t, answers[i].err, "Wait %d", i)
				res := answers[i].res
				if until == "" {
					exited(t, res, 3)
					require.True(t, strings.HasSuffix(res.Output, "one\ntwo\nthree\n"), show(res))
					require.True(t, strings.HasSuffix(unix([]byte(tees[i].String())),
						"one\ntwo\nthree\n"), "%d bytes for Tee", tees[i].Len())
					ended = true
					continue
				}
				running(t, res)
				require.Equal(t, until, res.Matched)
				require.True(t, strings.HasSuffix(res.Output, until), show(res))
				require.Contains(t, unix([]byte(tees[i].String())), until)
			}
			if !ended {
				exited(t, sh.wait(), 3)
			}
			sh.fails(sandbox.ErrIdle, "Wait", sh.waits())
			sh.lives()
		})
	}
}

// A firstWrite tells of the first Write.
type firstWrite struct {
	w    io.Writer
	seen func()
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.seen()
	return f.w.Write(p)
}

// freshShell: calls while a fresh shell is being started in the place of one that was killed.
func freshShell(t *testing.T, b *box) {
	t.Parallel()
	killed := func(sh *shell) {
		pid := sh.output("echo $$")
		b.script(sh.t, `kill -9 "$1"`, strings.TrimSpace(pid))
	}
	// and a Wait and an Interrupt beside it: they hang on nothing, and kill nothing later
	t.Run("GivenUp", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		for i := range 8 {
			killed(sh)
			require.NoError(t, together(3, func(k int) error {
				var err error
				switch k {
				case 0:
					_, err = attempt("Execute", func(ctx context.Context) (*sandbox.Result, error) {
						ctx, cancel := context.WithTimeout(ctx,
							time.Duration(rand.IntN(8000))*time.Microsecond)
						defer cancel()
						return sh.Execute(ctx, "sleep 1000")
					})
				case 1:
					_, err = attempt("Wait", sh.waits())
				case 2:
					_, err = attempt("Interrupt", sh.interrupts())
				}
				if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sandbox.ErrIdle) ||
					err == nil {
					return nil
				}
				return err
			}), "round %d", i)
			for n := range 5 {
				res := sh.exec(fmt.Sprintf("echo %d; (exit %d)", n, n))
				exited(t, res, n)
				same(t, fmt.Sprintf("%d\n", n), res.Output)
			}
		}
		sh.usable()
	})
	t.Run("Resize", func(t *testing.T) { // holds for the fresh one, whichever it meets
		t.Parallel()
		sh := b.open(t)
		for i := range 8 {
			size := fmt.Sprintf("%d %d\n", 30+i, 100+i)
			require.NoError(t, together(2, func(k int) error {
				if k == 0 {
					_, err := attempt("Execute", sh.executes("exit 3"))
					return err
				}
				_, err := attempt("Resize", empty(func(ctx context.Context) error {
					return sh.Resize(ctx, 30+i, 100+i)
				}))
				return err
			}), "round %d", i)
			same(t, size, sh.output("stty size"))
		}
		sh.usable()
	})
}

// forgotten: what callers forget: a context, an option.
func forgotten(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Context", func(t *testing.T) { // an error, and no harm
		t.Parallel()
		sh := b.open(t)
		var none context.Context
		job, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
			return b.Background(ctx, "sleep 1000")
		})
		require.NoError(t, err)
		for _, c := range []struct {
			name string
			call func() error
		}{
			{"Execute", func() error { _, err := sh.Execute(none, ":"); return err }},
			{"Input", func() error { _, err := sh.Input(none, "x\n"); return err }},
			{"Wait", func() error { _, err := sh.Wait(none); return err }},
			{"Interrupt", func() error { _, err := sh.Interrupt(none); return err }},
			{"Type", func() error { return sh.Type(none, "x\n") }},
			{"Screen", func() error { _, err := sh.Screen(none); return err }},
			{"Resize", func() error { return sh.Resize(none, 24, 80) }},
			{"Open", func() error { _, err := b.Open(none); return err }},
			{"Background", func() error { _, err := b.Background(none, ":"); return err }},
			{"Run", func() error {
				_, err := b.Run(none, &sandbox.Cmd{Args: []string{"true"}})
				return err
			}},
			{"CopyTo", func() error { return b.CopyTo(none, "/etc/passwd", sh.dir+"/x") }},
			{"CopyFrom", func() error { return b.CopyFrom(none, "/etc/passwd", t.TempDir()+"/x") }},
			{"Dial", func() error { _, err := b.Dial(none, "tcp", "127.0.0.1:1"); return err }},
			{"JobLogs", func() error { _, _, err := job.Logs(none, 0); return err }},
			{"JobInput", func() error { return job.Input(none, "x\n") }},
			{"JobSignal", func() error { return job.Signal(none, syscall.SIGTERM) }},
			{"JobWait", func() error { _, err := job.Wait(none); return err }},
			{"JobKill", func() error { return job.Kill(none) }},
		} {
			_, err := within(b, t, c.name, empty(func(context.Context) (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = nil
						t.Errorf("%s panics without a context: %v", c.name, p)
					}
				}()
				if err = c.call(); err == nil {
					t.Errorf("%s: no error without a context", c.name)
				}
				return nil
			}))
			require.NoError(t, err)
		}
		sh.lives()
		_, err = within(b, t, "Job.Kill", empty(job.Kill))
		require.NoError(t, err)
	})
	t.Run("Option", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t, nil)
		waiting(t, sh.exec("read -r x; (exit 4)", nil, sandbox.Timeout(limit), nil), sandbox.Line)
		waiting(t, sh.wait(nil), sandbox.Line)
		exited(t, sh.input("y\n", nil), 4)
		sh.fails(sandbox.ErrIdle, "Interrupt", sh.interrupts(nil))
		job, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
			return b.Background(ctx, "exit 4", nil)
		})
		require.NoError(t, err)
		res, err := within(b, t, "Job.Wait", job.Wait)
		require.NoError(t, err)
		require.Equal(t, 4, res.ExitCode)
		sh.lives()
	})
}
