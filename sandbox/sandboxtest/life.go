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

// life: Close ends everything and frees everyone.
func (s *suite) life(t *testing.T) {
	t.Run("46_CloseUnderWay", func(t *testing.T) { closeUnderWay(t, s) })
	t.Run("46_UseAfterClose", func(t *testing.T) { useAfterClose(t, s) })
	t.Run("46_CloseTwiceAndAtOnce", func(t *testing.T) {
		t.Parallel()
		sb := s.factory(t)
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, err := attempt("Close", empty(func(context.Context) error { return sb.Close() }))
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
		require.NoError(t, sb.Close())
	})
	t.Run("46_CloseSession", func(t *testing.T) { closeSession(t, s) })
	t.Run("46_NothingLeft", func(t *testing.T) { nothingLeft(t, s) })
	t.Run("46_NoGoroutineLeft", func(t *testing.T) { noGoroutineLeft(t, s) })
	t.Run("46_String", func(t *testing.T) {
		t.Parallel()
		require.NotEmpty(t, s.box(t).String())
	})
}

// discard leaves only the error of what a call returns.
func discard[T any](f func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := f(ctx); return err }
}

// closeUnderWay closes a box in which everything there is is going on.
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

	type call struct {
		name   string
		closed bool // must return ErrClosed; the others may have ended well
		f      func(context.Context) error
	}
	calls := []call{
		{"Execute", true, discard(executing.executes(sleep))},
		{"main's Execute", true, discard((&shell{Session: b.Sandbox}).executes(sleep))},
		{"Wait", true, discard(waits.waits())},
		{"Interrupt", false, discard(interrupting.interrupts())},
		{"Job.Wait", false, discard(j.Wait)},
		{"Run", true, func(ctx context.Context) error {
			_, err := b.Run(ctx, &sandbox.Cmd{Args: []string{"sleep", string(m)}, Stdin: pipe})
			return err
		}},
		{"CopyFrom", false, func(ctx context.Context) error {
			return b.CopyFrom(ctx, b.tmp+"/d", host+"/d")
		}},
	}
	if l, err := attempt("Listen", func(ctx context.Context) (net.Listener, error) {
		return b.Listen(ctx, "tcp", "127.0.0.1:0")
	}); !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, err)
		calls = append(calls, call{"Accept", true, func(context.Context) error {
			_, err := l.Accept()
			return err
		}})
	}
	if b.has(t, "python3") {
		address := b.start(t, echoServer).listening()
		calls = append(calls, call{"Dial", false, func(ctx context.Context) error {
			conn, err := b.Dial(ctx, "tcp", address)
			if err != nil {
				return err
			}
			defer conn.Close()
			conn.SetReadDeadline(time.Now().Add(limit))
			_, err = conn.Read(make([]byte, 1))
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				return fmt.Errorf("the connection outlives the box: %w", err)
			}
			return nil
		}})
	}
	var wg sync.WaitGroup
	errs := make([]error, len(calls))
	for i, c := range calls {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := attempt(c.name, empty(c.f))
			errs[i] = err
		}()
	}
	b.alive(t, m, 6)
	b.end(t)
	wg.Wait()
	for i, c := range calls {
		if errors.Is(errs[i], errors.ErrUnsupported) || !c.closed && errs[i] == nil {
			continue
		}
		require.ErrorIsf(t, errs[i], sandbox.ErrClosed, "%s", c.name)
		require.ErrorIsf(t, errs[i], os.ErrClosed, "%s", c.name)
	}
	select {
	case <-j.Done():
	case <-time.After(grace):
		t.Fatal("the job's Done is not closed")
	}
	waitingShell.fails(sandbox.ErrClosed, "Input", waitingShell.inputs("ann\n"))
}

func useAfterClose(t *testing.T, s *suite) {
	t.Parallel()
	b, _ := s.doomed(t)
	sh, j, host := b.open(t), b.start(t, "echo a; sleep 1000"), t.TempDir()
	j.shown("a\n")
	write(t, host+"/f", "x", 0o644)
	b.end(t)
	for _, c := range []struct {
		name string
		f    func(context.Context) error
	}{
		{"Execute", discard((&shell{Session: b.Sandbox}).executes(":"))},
		{"Input", discard((&shell{Session: b.Sandbox}).inputs("x\n"))},
		{"Wait", discard((&shell{Session: b.Sandbox}).waits())},
		{"Interrupt", discard((&shell{Session: b.Sandbox}).interrupts())},
		{"Screen", discard(b.Screen)},
		{"Resize", func(ctx context.Context) error { return b.Resize(ctx, 24, 80) }},
		{"Open", func(ctx context.Context) error { _, err := b.Open(ctx); return err }},
		{"Background", func(ctx context.Context) error {
			_, err := b.Background(ctx, ":")
			return err
		}},
		{"Run", func(ctx context.Context) error {
			_, err := b.Run(ctx, &sandbox.Cmd{Args: []string{"true"}})
			return err
		}},
		{"CopyTo", func(ctx context.Context) error { return b.CopyTo(ctx, host+"/f", "/tmp/f") }},
		{"CopyFrom", func(ctx context.Context) error {
			return b.CopyFrom(ctx, "/etc/passwd", host+"/g")
		}},
		{"Dial", func(ctx context.Context) error {
			conn, err := b.Dial(ctx, "tcp", "127.0.0.1:1")
			if err == nil {
				conn.Close()
			}
			return err
		}},
		{"Listen", func(ctx context.Context) error {
			_, err := b.Listen(ctx, "tcp", "127.0.0.1:0")
			return err
		}},
		{"SessionExecute", discard(sh.executes(":"))},
		{"SessionScreen", discard(sh.Screen)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := within(b, t, c.name, empty(c.f))
			require.ErrorIs(t, err, sandbox.ErrClosed)
			require.ErrorIs(t, err, os.ErrClosed)
		})
	}
	t.Run("Job", func(t *testing.T) { // ended with its box
		select {
		case <-j.Done():
		case <-time.After(grace):
			t.Fatal("Done is not closed")
		}
		_, err := within(b, t, "Job.Input", empty(func(ctx context.Context) error {
			return j.Input(ctx, "x\n")
		}))
		require.Error(t, err)
		within(b, t, "Job.Wait", j.Wait)
		within(b, t, "Job.Kill", empty(j.Kill))
		require.NotPanics(t, func() { b.Jobs(); b.Job(j.ID()); _ = b.ID(); _ = b.String() })
	})
	sh.close()
	b.end(t)
}

// closeSession: a session's Close frees its waiters, ends what it ran, and leaves the box alone.
func closeSession(t *testing.T, s *suite) {
	t.Parallel()
	b := s.box(t)
	m, other := b.marker(t), b.marker(t)
	sh, witness := b.open(t), b.open(t)
	sh.output("sleep " + string(m) + " &")
	done := make(chan error)
	go func() {
		_, err := attempt("Execute", sh.executes(`sh -c 'trap "" INT TERM HUP; sleep `+string(m)+
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
	sh.fails(sandbox.ErrClosed, "Execute", sh.executes(":"))
	sh.fails(sandbox.ErrClosed, "Wait", sh.waits())
}

// nothingLeft: a box's processes end with it. Where two boxes are on the same machine, as with
// LocalBox, one can see it of the other.
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
		b.suite.skip(t, "no box sees another's processes")
	}
	b.end(t)
	witness.gone(t, m)
}

// noGoroutineLeft: what a box has started in this program ends with it. A goroutine inherits the
// labels of the one that starts it: by them the box's are told from those of all that runs at the
// same time.
func noGoroutineLeft(t *testing.T, s *suite) {
	t.Parallel()
	const key = "sandboxtest"
	pprof.Do(t.Context(), pprof.Labels(key, t.Name()), func(context.Context) {
		t.Run("Box", func(t *testing.T) { // closed at the end of it
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
	// one that has said its last word is still there for a moment
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		if left = goroutines(label); len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines left:\n%s", strings.Join(left, "\n\n"))
		}
	}
}

// goroutines lists the stacks of the goroutines that have a label.
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
