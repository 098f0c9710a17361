// Package sandboxtest is the conformance suite of sandboxes: it runs what users of such systems have been bitten by
// against any [sandbox.Sandbox], ours or not.
//
//	func TestConformance(t *testing.T) {
//		sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
//			ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // t.Context() has ended in a Cleanup
//			defer cancel()
//			box, err := mybox.New(ctx, mybox.Config{})
//			if err != nil {
//				t.Fatal(err)
//			}
//			t.Cleanup(func() { box.Close() })
//			return box
//		})
//	}
//
// # What it takes for granted
//
// A box has a POSIX shell (bash, dash or busybox ash: the suite asks which), /dev/null, /dev/tty, a writable /tmp and the
// standard utilities. All else it looks for first: a case whose program (python3, less, sudo, …) or shell (arrays, [[ ]])
// the box does not have is skipped with the reason, one whose method returns errors.ErrUnsupported as "unsupported by this
// box", and all that were left out are listed in the end. Nothing needs a network or changes the machine the box is on:
// what it makes is in a temporary directory, and questions that would do more are answered with no.
//
// # How it is laid out
//
// One file and one group of subtests for each section of the list of cases; a subtest begins with its case's number, as
// in Run/Syntax/03_HereDocuments. Each group has a box of its own, and most cases a session of their own in it. Every
// call has a minute: one that takes longer fails, and one that does not heed its context even shows where everything hangs.
package sandboxtest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// An Option adjusts the suite to what a sandbox costs.
type Option func(*options)

type options struct {
	boxes    int
	sessions int
}

// Boxes sets how many sandboxes are made at once by Concurrency/48_Boxes. Default: 20; 0 leaves the case out.
func Boxes(n int) Option { return func(o *options) { o.boxes = n } }

// Sessions sets how many sessions Concurrency/48_Sessions opens in one sandbox at once. Default: 50; 0 leaves the case out.
func Sessions(n int) Option { return func(o *options) { o.sessions = n } }

// Run runs the suite. The factory makes a new sandbox each time it is called: about 20 one after the other, of which at
// most two exist at a time, and those of [Boxes] at once, from goroutines. The suite closes every sandbox, and the factory
// may register a Cleanup that closes it again. With -short, the largest amounts of data are a tenth of what they are otherwise.
func Run(t *testing.T, factory func(t testing.TB) sandbox.Sandbox, opts ...Option) {
	s := &suite{options: options{boxes: 20, sessions: 50}, factory: factory}
	for _, opt := range opts {
		opt(&s.options)
	}
	s.markers.Store(900_000_000 + rand.Int64N(99_000_000))
	for _, group := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Syntax", s.syntax},
		{"Output", s.output},
		{"State", s.state},
		{"ShellEnd", s.shellEnd},
		{"Interaction", s.interaction},
		{"Time", s.time},
		{"Background", s.background},
		{"Run", s.run},
		{"Files", s.files},
		{"Network", s.network},
		{"Life", s.life},
		{"Concurrency", s.concurrency},
	} {
		t.Run(group.name, group.test)
	}
	if len(s.skipped) > 0 {
		t.Logf("left out:\n%s", strings.Join(s.skipped, "\n"))
	}
}

// A suite is one call of Run.
type suite struct {
	options
	factory func(testing.TB) sandbox.Sandbox

	programs sync.Map     // name → bool: is it in the boxes?
	markers  atomic.Int64 // the last marker

	mu      sync.Mutex
	skipped []string
}

// skip leaves a case out, for a reason that is listed in the end.
func (s *suite) skip(t testing.TB, reason string) {
	t.Helper()
	s.mu.Lock()
	s.skipped = append(s.skipped, t.Name()+": "+reason)
	s.mu.Unlock()
	t.Skip(reason)
}

// amount is n, or a tenth of it with -short.
func amount(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
