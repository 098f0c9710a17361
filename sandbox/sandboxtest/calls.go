package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A namedCall is a call of a method with ctx.
type namedCall struct {
	name string
	call func(context.Context) error
}

// errorOf returns the error of a call: errorOf(f()).
func errorOf[T any](_ T, err error) error { return err }

// sessionCalls calls each method of a session once.
func sessionCalls(s sandbox.Session) []namedCall {
	return []namedCall{
		{"Execute", func(ctx context.Context) error {
			return errorOf(s.Execute(ctx, ": > touched"))
		}},
		{"Input", func(ctx context.Context) error { return errorOf(s.Input(ctx, "x\n")) }},
		{"Wait", func(ctx context.Context) error { return errorOf(s.Wait(ctx)) }},
		{"Interrupt", func(ctx context.Context) error { return errorOf(s.Interrupt(ctx)) }},
		{"Type", func(ctx context.Context) error { return s.Type(ctx, "x\n") }},
		{"Screen", func(ctx context.Context) error { return errorOf(s.Screen(ctx)) }},
		{"Resize", func(ctx context.Context) error { return s.Resize(ctx, 24, 80) }},
	}
}

// boxCalls calls each method of a box, but for those of its main session and of its files. dir is a
// directory of the box, host one of this machine.
func boxCalls(b sandbox.Sandbox, dir, host string) []namedCall {
	touch := &sandbox.Cmd{Args: []string{"touch", "touched"}, Dir: dir}
	return []namedCall{
		{"Open", func(ctx context.Context) error { return errorOf(b.Open(ctx)) }},
		{"Background", func(ctx context.Context) error {
			return errorOf(b.Background(ctx, ": > touched", sandbox.Dir(dir)))
		}},
		{"Run", func(ctx context.Context) error { return errorOf(b.Run(ctx, touch)) }},
		{"CopyTo", func(ctx context.Context) error { return b.CopyTo(ctx, host, dir+"/touched") }},
		{"CopyFrom", func(ctx context.Context) error { return b.CopyFrom(ctx, dir, host+"/copy") }},
		{"Dial", func(ctx context.Context) error {
			return errorOf(b.Dial(ctx, "tcp", "127.0.0.1:1"))
		}},
		{"Listen", func(ctx context.Context) error {
			return errorOf(b.Listen(ctx, "tcp", "127.0.0.1:0"))
		}},
	}
}

// sharedCommand makes several calls at once that wait for one command, each with its own options.
func sharedCommand(t *testing.T, b *box) {
	for _, c := range []struct {
		name   string
		untils []string // an Until for each Wait, or ""
	}{
		{"UntilAndNone", []string{"two\n", ""}},
		{"TwoUntils", []string{"one\n", "two\n"}},
		{"TheSameUntil", []string{"two\n", "two\n"}},
		{"Three", []string{"", "one\n", "three\n"}},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) { waitsAtOnce(t, sh, c.untils) })
	}
}

func waitsAtOnce(t *testing.T, sh *shell, untils []string) {
	const ticking = "until [ -e go ]; do echo tick; sleep 0.02; done; echo one; echo two; echo " +
		"three; (exit 3)"
	running(t, sh.exec(ticking, sandbox.Yield(50*time.Millisecond)))
	answers := make([]answer, len(untils))
	tees := make([]strings.Builder, len(untils))
	var all, listening sync.WaitGroup
	for i, until := range untils {
		opts := []sandbox.ExecOption{sandbox.Tee(&firstWrite{w: &tees[i],
			seen: sync.OnceFunc(listening.Done)})}
		if until != "" {
			opts = append(opts, sandbox.Until(regexp.MustCompile(until)))
		}
		listening.Add(1)
		all.Go(func() { answers[i].res, answers[i].err = attempt("Wait", sh.waitCall(opts...)) })
	}
	listening.Wait()
	sh.touch("go")
	all.Wait()
	const end = "one\ntwo\nthree\n"
	ended := false
	for i, until := range untils {
		res, tee := answers[i].res, unix([]byte(tees[i].String()))
		require.NoErrorf(t, answers[i].err, "Wait %d", i)
		if until == "" {
			exited(t, res, 3)
			require.True(t, strings.HasSuffix(res.Output, end), show(res))
			require.Truef(t, strings.HasSuffix(tee, end), "Tee of Wait %d: %s", i, brief(tee))
			ended = true
			continue
		}
		running(t, res)
		require.Equal(t, until, res.Matched)
		require.True(t, strings.HasSuffix(res.Output, until), show(res))
		require.Containsf(t, tee, until, "Tee of Wait %d", i)
	}
	if !ended {
		exited(t, sh.wait(), 3)
	}
	sh.fails(sandbox.ErrIdle, "Wait", sh.waitCall())
}

// An answer is what a call in another goroutine has returned.
type answer struct {
	res *sandbox.Result
	err error
}

// A firstWrite calls seen at each Write, before w gets it.
type firstWrite struct {
	w    io.Writer
	seen func()
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.seen()
	return f.w.Write(p)
}

// freshShell makes calls while the session starts a fresh shell in place of one that was killed.
func freshShell(t *testing.T, b *box) {
	// An Execute is cancelled, and a Wait and an Interrupt come at once. None of them hangs, and
	// none ends a later command.
	b.test(t, "GivenUp", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		for i := range 8 {
			pid := sh.output("echo $$")
			b.script(t, `kill -9 "$1"`, strings.TrimSpace(pid))
			require.NoError(t, together(3, func(k int) error {
				err := errorOf(attempt("call", []call{func(ctx context.Context) (*sandbox.Result,
					error) {
					ctx, cancel := context.WithTimeout(ctx,
						time.Duration(rand.IntN(8000))*time.Microsecond)
					defer cancel()
					return sh.Execute(ctx, "sleep 1000")
				}, sh.waitCall(), sh.interruptCall()}[k]))
				if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sandbox.ErrIdle) {
					return nil
				}
				return err
			}), "round %d", i)
			for n := range 5 {
				exitedWith(t, sh.exec(fmt.Sprintf("echo %d; (exit %d)", n, n)), n,
					fmt.Sprintf("%d\n", n))
			}
		}
	})
	// The fresh shell has the new size, whether Resize comes before it or after it.
	b.test(t, "Resize", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		for i := range 8 {
			require.NoError(t, together(2, func(k int) error {
				if k == 0 {
					return errorOf(attempt("Execute", sh.executeCall("exit 3")))
				}
				return errorOf(attempt("Resize", noResult(func(ctx context.Context) error {
					return sh.Resize(ctx, 30+i, 100+i)
				})))
			}), "round %d", i)
			same(t, fmt.Sprintf("%d %d\n", 30+i, 100+i), sh.output("stty size"))
		}
	})
}

// forgotten passes nil for a context and for an option.
func forgotten(t *testing.T, b *box) {
	b.test(t, "Context", func(t *testing.T, sh *shell) {
		job := b.start(t, "sleep 1000")
		for _, c := range slices.Concat(sessionCalls(sh), boxCalls(b, sh.dir, t.TempDir()),
			[]namedCall{
				{"JobLogs", func(ctx context.Context) error {
					_, _, err := job.Logs(ctx, 0)
					return err
				}},
				{"JobInput", func(ctx context.Context) error { return job.Input(ctx, "x\n") }},
				{"JobSignal", func(ctx context.Context) error {
					return job.Signal(ctx, syscall.SIGTERM)
				}},
				{"JobStatus", func(ctx context.Context) error {
					return errorOf(job.Status(ctx))
				}},
				{"JobUntil", func(ctx context.Context) error { return errorOf(job.Until(ctx)) }},
				{"JobWait", func(ctx context.Context) error { return errorOf(job.Wait(ctx)) }},
				{"JobKill", func(ctx context.Context) error { return job.Kill(ctx) }},
			}) {
			_, err := attempt(c.name, noResult(func(context.Context) error {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s panics if its context is nil, want an error: %v", c.name, p)
					}
				}()
				var none context.Context
				if c.call(none) == nil {
					t.Errorf("%s: no error, though its context is nil", c.name)
				}
				return nil
			}))
			require.NoError(t, err)
		}
	})
	parallel(t, "Option", func(t *testing.T) {
		sh := b.open(t, nil)
		waiting(t, sh.exec("read -r x; (exit 4)", nil, sandbox.Timeout(limit), nil), sandbox.Line)
		waiting(t, sh.wait(nil), sandbox.Line)
		exited(t, sh.input("y\n", nil), 4)
		sh.fails(sandbox.ErrIdle, "Interrupt", sh.interruptCall(nil))
		b.start(t, "exit 4", nil).ends(4)
		sh.lives()
	})
}

// wrongInputs passes values that make no sense: the error says so. A time below 0 has passed.
func wrongInputs(t *testing.T, b *box) {
	sh := b.open(t)
	for _, p := range []sandbox.Policy{-1, 99} {
		_, err := within(b, t, "Execute", sh.executeCall(": >touched", sandbox.AtQuestion(p)))
		require.ErrorContains(t, err, "there is no policy")
	}
	same(t, "", sh.output("ls"))

	exited(t, sh.timeout(-time.Second, "sleep 1000"), 130)
	for _, at := range []sandbox.ExecOption{sandbox.Yield(-1), sandbox.Idle(-1)} {
		running(t, sh.exec("sleep 1000", at))
		sh.interrupt()
	}
	sh.lives()

	_, err := b.tryOpen(t, sandbox.Env("A B=1"))
	require.ErrorContains(t, err, "A B")
	code, err := b.tryRun(t, &sandbox.Cmd{Args: []string{"ls -l"}})
	require.Equal(t, 127, code)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "each argument is an element")
}
