package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A gate is a Tee that lets nothing through until it is opened.
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

// stuckTee has the caller of one session read no output. That is the caller's affair alone: another
// session is as quick as ever.
func stuckTee(t *testing.T, b *box) {
	stuck, neighbor := b.open(t), b.open(t)
	works := func() time.Duration {
		begin := time.Now()
		for range 3 { // the engine comes to look at the stuck session some time in between
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
	type answer struct {
		res *sandbox.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		// for as long as works takes
		res, err := stuck.executes(fmt.Sprintf("seq 1 %d", n), sandbox.Tee(g),
			sandbox.MaxOutput(4*len(want)))(t.Context())
		done <- answer{res, err}
	}()
	t.Cleanup(g.open) // before the sessions are closed, whatever happens
	_, err := within(b, t, "the first output", empty(func(ctx context.Context) error {
		select {
		case <-g.reached:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	require.NoError(t, err)

	// An engine that waits for the stuck session takes 20 s for each question and each kill: two
	// minutes.
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
	exited(t, res, 0)
	same(t, want, res.Output)
	same(t, want, string(bytes.ReplaceAll(g.passed.Bytes(), []byte("\r\n"), []byte("\n"))))
	neighbor.lives()
}
