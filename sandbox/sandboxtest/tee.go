package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A watcher is a writer that calls seen once, when it has got text.
type watcher struct {
	text string
	seen func()
	mu   sync.Mutex
	buf  bytes.Buffer
	done bool
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.text) {
		w.done = true
		w.seen()
	}
	return len(p), nil
}

// A failingWriter fails each Write.
type failingWriter struct{ calls int }

func (w *failingWriter) Write([]byte) (int, error) { w.calls++; return 0, errors.New("disk full") }

// tee writes raw output to a Tee.
func tee(t *testing.T, b *box) {
	b.test(t, "Raw", func(t *testing.T, sh *shell) {
		var raw bytes.Buffer
		same(t, "red\n", sh.output(`printf '\033[31mred\033[0m\n'`, sandbox.Tee(&raw)))
		same(t, "\x1b[31mred\x1b[0m\n", unix(raw.Bytes()))
	})
	// The output is more than Output keeps.
	b.test(t, "AllOfALot", func(t *testing.T, sh *shell) {
		var raw bytes.Buffer
		exited(t, sh.exec("seq 1 50000", sandbox.Tee(&raw), sandbox.MaxOutput(1000)), 0)
		same(t, lines(1, 50000), unix(raw.Bytes()))
	})
	b.test(t, "AsItComes", func(t *testing.T, sh *shell) {
		seen := make(chan struct{})
		go func() {
			<-seen
			b.sh(t, `: > "$1"`, sh.dir+"/go")
		}()
		w := &watcher{text: "one\n", seen: func() { close(seen) }}
		res := sh.exec("echo one; until [ -e go ]; do sleep 0.02; done; echo two", sandbox.Tee(w),
			sandbox.Yield(grace))
		if !w.done {
			close(seen)
		}
		exitedWith(t, res, 0, "one\ntwo\n")
	})
	b.test(t, "OfEveryCall", func(t *testing.T, sh *shell) {
		var first, second bytes.Buffer
		waiting(t, sh.exec("printf 'name? '; read -r n; echo hello $n", sandbox.Tee(&first)),
			sandbox.Line)
		same(t, "name? ", first.String())
		exited(t, sh.input("ann\n", sandbox.Tee(&second)), 0)
		same(t, "ann\nhello ann\n", unix(second.Bytes()))
		same(t, "name? ", first.String())
	})
	b.test(t, "Error", func(t *testing.T, sh *shell) {
		w := &failingWriter{}
		same(t, lines(1, 10000), sh.output("seq 1 5000; sleep 0.1; seq 5001 10000", sandbox.Tee(w)))
		require.Equal(t, 1, w.calls, "writes after the first error")
	})
}

// A gate is a writer that blocks until open.
type gate struct {
	reached chan struct{} // closed by the first Write
	opened  chan struct{}
	once    sync.Once
	opening sync.Once
	passed  bytes.Buffer
}

func newGate() *gate { return &gate{reached: make(chan struct{}), opened: make(chan struct{})} }

func (g *gate) open() { g.opening.Do(func() { close(g.opened) }) }

func (g *gate) isReached() bool {
	select {
	case <-g.reached:
		return true
	default:
		return false
	}
}

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.reached) })
	<-g.opened
	return g.passed.Write(p)
}

// stuckTee blocks the Tee of one session. Another session is as fast as without it.
func stuckTee(t *testing.T, b *box) {
	stuck, neighbor := b.open(t), b.open(t)
	works := func() time.Duration {
		begin := time.Now()
		for range 3 { // in which time an implementation looks at the stuck session
			waiting(t, neighbor.exec(ask), sandbox.Line)
			exited(t, neighbor.input("ann\n"), 0)
			exited(t, neighbor.timeout(200*time.Millisecond, "sleep 1000"), 130)
		}
		return time.Since(begin)
	}
	alone := works()
	n := 300_000
	want := lines(1, n)
	g := newGate()
	done := make(chan answer, 1)
	go func() {
		// without the limit of attempt: works may take longer
		res, err := stuck.executeCall(fmt.Sprintf("seq 1 %d", n), sandbox.Tee(g),
			sandbox.MaxOutput(4*len(want)))(t.Context())
		done <- answer{res, err}
	}()
	t.Cleanup(g.open) // runs before the sessions are closed
	_, err := within(b, t, "the first output", noResult(func(ctx context.Context) error {
		select {
		case <-g.reached:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	require.NoError(t, err)

	// An implementation that waited for the stuck session would need 20 s for each of six calls.
	require.Less(t, works(), 5*alone+45*time.Second,
		"three questions and three kills beside a stuck session, which took %v alone", alone)
	g.open()
	res, err := within(b, t, "the end of the stuck session's command",
		func(ctx context.Context) (*sandbox.Result, error) {
			select {
			case a := <-done:
				return a.res, a.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	require.NoError(t, err)
	exitedWith(t, res, 0, want)
	same(t, want, unix(g.passed.Bytes()))
	neighbor.lives()
}

// follow gives writers to Follow and LogTo. They get all output, also while no call waits.
func follow(t *testing.T, b *box) {
	b.test(t, "BetweenCalls", func(t *testing.T, sh *shell) {
		var raw bytes.Buffer
		running(t, sh.exec(`printf '\033[1mone\033[0m\n'; until [ -e go ]; do sleep 0.02; done
echo two; : > come; until [ -e on ]; do sleep 0.02; done; read -r n; echo "$n"`,
			sandbox.Follow(&raw), sandbox.Until(regexp.MustCompile("one\n"))))
		// "two" comes while no call waits
		b.script(t, `cd "$1"; : > go; until [ -e come ]; do sleep 0.02; done; : > on`, sh.dir)
		waiting(t, sh.wait(), sandbox.Line)
		same(t, "\x1b[1mone\x1b[0m\ntwo\n", unix(raw.Bytes()))
		exited(t, sh.input("three\n"), 0)
		sh.output("echo another command")
		same(t, "\x1b[1mone\x1b[0m\ntwo\nthree\nthree\n", unix(raw.Bytes()))
	})
	b.test(t, "Error", func(t *testing.T, sh *shell) {
		w := &failingWriter{}
		same(t, lines(1, 10000), sh.output("seq 1 5000; sleep 0.1; seq 5001 10000",
			sandbox.Follow(w)))
		require.Equal(t, 1, w.calls, "writes after the first error")
	})
	// A writer that fails does not affect the others.
	b.test(t, "Several", func(t *testing.T, sh *shell) {
		var raw, other bytes.Buffer
		same(t, lines(1, 5000), sh.output("seq 1 5000", sandbox.Follow(&raw),
			sandbox.Follow(&failingWriter{}), sandbox.Follow(nil), sandbox.Follow(&other)))
		same(t, lines(1, 5000), unix(raw.Bytes()))
		same(t, lines(1, 5000), unix(other.Bytes()))
	})
	// A command's output comes before the next one's, although no call has waited for its end.
	b.test(t, "Turns", func(t *testing.T, sh *shell) {
		var raw slow
		running(t, sh.exec("seq 1 20000", sandbox.Follow(&raw),
			sandbox.Until(regexp.MustCompile("1\n"))))
		for {
			_, err := within(b, t, "Execute", sh.executeCall("echo end", sandbox.Follow(&raw)))
			if err == nil {
				break
			}
			require.ErrorIs(t, err, sandbox.ErrBusy)
			time.Sleep(time.Millisecond)
		}
		same(t, lines(1, 20000)+"end\n", unix(raw.Bytes()))
	})
	parallel(t, "Job", func(t *testing.T) {
		var raw bytes.Buffer
		j := b.start(t, "seq 1 20000; (exit 3)", sandbox.LogTo(&raw), sandbox.MaxLog(100))
		<-j.Done()
		same(t, lines(1, 20000), unix(raw.Bytes()))
	})
}
