package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// life closes boxes and sessions: their calls return, and nothing is left.
func (s *suite) life(t *testing.T) {
	t.Run("46_CloseUnderWay", func(t *testing.T) { closeUnderWay(t, s) })
	t.Run("46_UseAfterClose", func(t *testing.T) { useAfterClose(t, s) })
	parallel(t, "46_CloseTwiceAndAtOnce", func(t *testing.T) {
		sb := s.factory(t)
		require.NoError(t, together(5, func(int) error {
			return errorOf(attempt("Close", closeCall(sb)))
		}))
		require.NoError(t, sb.Close())
	})
	t.Run("46_CloseSession", func(t *testing.T) { closeSession(t, s) })
	t.Run("46_NothingLeft", func(t *testing.T) { nothingLeft(t, s) })
	t.Run("46_NoGoroutineLeft", func(t *testing.T) { noGoroutineLeft(t, s) })
	parallel(t, "46_String", func(t *testing.T) {
		require.NotEmpty(t, s.box(t).String())
	})
}

// dropResult adapts a call to namedCall.
func dropResult[T any](f func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := f(ctx); return err }
}

// closeUnderWay closes a box while each of its methods runs.
func closeUnderWay(t *testing.T, s *suite) {
	t.Parallel()
	b, witness := s.doomed(t)
	m := witness.marker(t)
	host := t.TempDir()
	sleep := "sleep " + string(m)
	executing, waits, interrupting := b.open(t), b.open(t), b.open(t)
	running(t, waits.exec(sleep, sandbox.Yield(50*time.Millisecond)))
	running(t, interrupting.exec(`sh -c 'trap "" INT TERM; `+sleep+`; :'`,
		sandbox.Yield(200*time.Millisecond)))
	waitingShell := b.open(t)
	waiting(t, waitingShell.exec(ask), sandbox.Line)
	j := b.start(t, sleep)
	b.script(t, `mkfifo "$1/fifo"; mkdir "$1/d"; head -c 100000000 /dev/zero > "$1/d/large"`, b.tmp)
	pipe, end := io.Pipe()
	defer end.Close()

	calls := []namedCall{
		{"Execute", dropResult(executing.executeCall(sleep))},
		{"main's Execute", dropResult(b.main(t).executeCall(sleep))},
		{"Wait", dropResult(waits.waitCall())},
		{"Run", func(ctx context.Context) error {
			return errorOf(b.Run(ctx, &sandbox.Cmd{Args: []string{"sleep", string(m)},
				Stdin: pipe}))
		}},
	}
	if l, err := attempt("Listen", func(ctx context.Context) (net.Listener, error) {
		return b.Listen(ctx, "tcp", "127.0.0.1:0")
	}); !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, err)
		calls = append(calls, namedCall{"Accept", func(context.Context) error {
			return errorOf(l.Accept())
		}})
	}
	mustFail := len(calls) // the calls after these may succeed before Close
	calls = append(calls,
		namedCall{"Interrupt", dropResult(interrupting.interruptCall())},
		namedCall{"Job.Wait", dropResult(j.Wait)},
		namedCall{"Job.Until", dropResult(j.untilCall())},
		namedCall{"Job.Status", dropResult(j.Status)},
		namedCall{"CopyFrom", func(ctx context.Context) error {
			return b.CopyFrom(ctx, b.tmp+"/d", host+"/d")
		}})
	if b.has(t, "python3") {
		address := b.start(t, echoServer).listening()
		calls = append(calls, namedCall{"Dial", func(ctx context.Context) error {
			return readUntilClose(ctx, b, address)
		}})
	}
	var wg sync.WaitGroup
	errs := make([]error, len(calls))
	for i, c := range calls {
		wg.Go(func() { _, errs[i] = attempt(c.name, noResult(c.call)) })
	}
	b.alive(t, m, 6)
	b.mustClose(t)
	wg.Wait()
	for i, c := range calls {
		if errors.Is(errs[i], errors.ErrUnsupported) || i >= mustFail && errs[i] == nil {
			continue
		}
		require.ErrorIsf(t, errs[i], sandbox.ErrClosed, "%s", c.name)
		require.ErrorIsf(t, errs[i], os.ErrClosed, "%s", c.name)
	}
	j.isDone()
	waitingShell.fails(sandbox.ErrClosed, "Input", waitingShell.inputCall("ann\n"))
}

// readUntilClose reads from a server that prints nothing, until Close of the box ends the
// connection.
func readUntilClose(ctx context.Context, b *box, address string) error {
	conn, err := b.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(limit))
	_, err = conn.Read(make([]byte, 1))
	if isTimeout(err) {
		return fmt.Errorf("the connection outlives its box: %w", err)
	}
	return nil
}

// useAfterClose makes calls of a closed box.
func useAfterClose(t *testing.T, s *suite) {
	t.Parallel()
	b, _ := s.doomed(t)
	sh, j, host := b.open(t), b.start(t, "echo a; sleep 1000"), t.TempDir()
	j.shown("a\n")
	b.mustClose(t)
	calls := append(sessionCalls(b), boxCalls(b, b.tmp, host)...)
	for _, c := range sessionCalls(sh) {
		if c.name == "Execute" || c.name == "Screen" {
			calls = append(calls, namedCall{"Session" + c.name, c.call})
		}
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			_, err := within(b, t, c.name, noResult(c.call))
			require.ErrorIs(t, err, sandbox.ErrClosed)
			require.ErrorIs(t, err, os.ErrClosed)
		})
	}
	t.Run("Job", func(t *testing.T) {
		j.isDone()
		require.Error(t, j.input("x\n"))
		within(b, t, "Job.Wait", j.Wait)
		require.ErrorIs(t, errorOf(within(b, t, "Job.Status", j.Status)), sandbox.ErrClosed)
		require.ErrorIs(t, errorOf(within(b, t, "Job.Until", j.untilCall())), sandbox.ErrClosed)
		within(b, t, "Job.Kill", noResult(j.Kill))
		require.NotPanics(t, func() { b.Jobs(); b.Job(j.ID()); _ = b.ID(); _ = b.String() })
	})
	sh.close()
	b.mustClose(t)
}

// closeSession closes a session: its calls return, its processes end, and other sessions go on.
func closeSession(t *testing.T, s *suite) {
	t.Parallel()
	b := s.box(t)
	m, other := b.marker(t), b.marker(t)
	sh, witness := b.open(t), b.open(t)
	sh.output("sleep " + string(m) + " &")
	done := make(chan error)
	go func() {
		_, err := attempt("Execute", sh.executeCall(`sh -c 'trap "" INT TERM HUP; sleep `+string(m)+
			`; :'`))
		done <- err
	}()
	running(t, witness.exec("sleep "+string(other), sandbox.Yield(100*time.Millisecond)))
	b.alive(t, m, 3)
	sh.close()
	require.ErrorIs(t, <-done, sandbox.ErrClosed)
	b.gone(t, m)
	sh.close()
	require.Len(t, b.processes(t, other), 1, "another session's program")
	exited(t, witness.interrupt(), 130)
	witness.lives()
	sh.fails(sandbox.ErrClosed, "Execute", sh.executeCall(":"))
	sh.fails(sandbox.ErrClosed, "Wait", sh.waitCall())
}

// nothingLeft checks that a box's processes end with it. It needs two boxes that see each other's
// processes, as those of package localbox do.
func nothingLeft(t *testing.T, s *suite) {
	t.Parallel()
	b, witness := s.doomed(t)
	m := witness.marker(t)
	sleep := "sleep " + string(m)
	sh := b.open(t)
	sh.output(sleep + " & (" + sleep + " &) ; nohup " + sleep + " >/dev/null 2>&1 &")
	running(t, sh.exec(`sh -c 'trap "" INT TERM HUP; `+sleep+`; :'`,
		sandbox.Yield(100*time.Millisecond)))
	b.start(t, `sh -c 'trap "" INT TERM HUP; `+sleep+` & wait'`)
	if b.has(t, "setsid") {
		b.start(t, "setsid "+sleep+" & wait")
	}
	b.alive(t, m, 6)
	if len(witness.processes(t, m)) == 0 {
		b.suite.skip(t, "a box does not see another's processes")
	}
	b.mustClose(t)
	witness.gone(t, m)
}

// noGoroutineLeft checks that a box's goroutines end with it. A goroutine inherits the labels of
// the one that starts it, by which the box's are found among all.
func noGoroutineLeft(t *testing.T, s *suite) {
	t.Parallel()
	const key = "sandboxtest"
	pprof.Do(t.Context(), pprof.Labels(key, t.Name()), func(context.Context) {
		t.Run("Box", func(t *testing.T) { // which closes the box when it ends
			b := s.box(t)
			sh := b.open(t)
			sh.lives()
			sh.timeout(50*time.Millisecond, "sleep 1000")
			waiting(t, sh.exec(ask), sandbox.Line)
			sh.resize(30, 90)
			sh.screen()
			b.start(t, "sleep 1000")
			b.start(t, "seq 1 1000").ends(0)
		})
	})
	label := fmt.Sprintf("%q:%q", key, t.Name())
	var left []string
	// A goroutine may take a moment to end.
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		if left = goroutines(label); len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left after Close:\n%s", len(left),
				strings.Join(left, "\n\n"))
		}
	}
}

// goroutines returns the stacks of the goroutines with a label.
func goroutines(label string) (stacks []string) {
	var profile strings.Builder
	pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, label) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
