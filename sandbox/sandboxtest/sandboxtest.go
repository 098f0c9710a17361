// Package sandboxtest is the conformance suite of sandboxes: it runs what users of such systems
// have been bitten by against any [sandbox.Sandbox], ours or not.
//
//	func TestConformance(t *testing.T) {
//		sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
//			// t.Context() has ended in a Cleanup
//			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
// The groups of cases run side by side: Run returns at once, and they go on when the calling test
// has returned. What is to happen after them belongs in a Cleanup, not behind Run or in a defer.
//
// # What it takes for granted
//
// A box has a POSIX shell (bash, dash or busybox ash: the suite asks which), /dev/null, /dev/tty, a
// writable /tmp and the standard utilities. All else it looks for first: a case whose program
// (python3, less, sudo, …) or shell (arrays, [[ ]]) the box does not have is skipped with the
// reason, one whose method returns errors.ErrUnsupported as "unsupported by this box", and all that
// were left out are listed in the end. Nothing needs a network or changes the machine the box is
// on: what it makes is in a temporary directory, and questions that would do more are answered with
// no.
//
// # How it is laid out
//
// One file and one group of subtests for each section of the list of cases; a subtest begins with
// its case's number, as in TestConformance/Syntax/03_HereDocuments. Each group has a box of its
// own, and most cases a session of their own in it. Every call has a minute: one that takes longer
// fails, and one that does not heed its context even shows where everything hangs.
//
// # How long it takes
//
// The cases wait more than they work, and all of them are parallel subtests. How many run at once
// is go test's -parallel: four times the number of processors keeps these busy. [Full] makes the
// suite repeat and copy as much as its rarest failures took; [Groups] chooses what to run.
package sandboxtest

import (
	"math/rand/v2"
	"slices"
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
	full     bool

	lossyEcho bool
	plain     bool
	groups    []string
	fourths   []int
}

// Boxes sets how many sandboxes are made at once by Concurrency/48_Boxes. Default: 5, with [Full]
// 20; 0 leaves the case out.
func Boxes(n int) Option { return func(o *options) { o.boxes = n } }

// Sessions sets how many sessions Concurrency/48_Sessions opens in one sandbox at once, and Zoo,
// which has 10 at most. Default: 10, with [Full] 50; 0 leaves the former out.
func Sessions(n int) Option { return func(o *options) { o.sessions = n } }

// Full has the suite repeat what fails only now and then as often as that took to be seen, up to
// 1,000 times, and move as much data as was lost, up to 100 MB, and try every row of Zoo, some a
// hundred times. Without it the former are a tenth and of the latter every fourth is tried
// ([Fourths]): enough for every day, where a nightly run is full.
func Full() Option { return func(o *options) { o.full = true } }

// Groups chooses the groups to run, by their names: Syntax, Output, State, ShellEnd, Interaction,
// Time, Background, Run, Files, Network, Life, Concurrency, User, Zoo, ZooOften, Adversary. One
// that is not among them fails the test. Default: all.
//
// It is for a second box on the same engine, of which only the transport is to be shown. One that
// has been run by no other needs all.
func Groups(names ...string) Option {
	return func(o *options) { o.groups = append(o.groups, names...) }
}

// Fourths chooses which fourths of the rows of Zoo are tried without [Full], 0 to 3, so that boxes
// which look at programs in the same way can share them. Default: the first, which has besides its
// own the rows that [PlainSSHD] leaves out.
func Fourths(n ...int) Option { return func(o *options) { o.fourths = n } }

// LossyEcho is for a box that types to a terminal without seeing how much the terminal has echoed,
// as over a plain sshd. While a program prints, Linux drops of the echo what its buffer of 4 KiB
// does not hold: 27_Input does not ask for all of it.
func LossyEcho() Option { return func(o *options) { o.lossyEcho = true } }

// PlainSSHD is for a box over a plain sshd, which looks at programs by a script: it leaves out the
// rows of Zoo that say why such a script cannot tell.
func PlainSSHD() Option { return func(o *options) { o.plain = true } }

// Run runs the suite, in parallel subtests of t.
//
// The factory makes a new sandbox each time it is called, from several goroutines: one for each of
// the 16 groups and about ten for Life, all of which may exist at once, and those of [Boxes] beside
// them. The suite closes every sandbox, and the factory may register a Cleanup that closes it
// again.
func Run(t *testing.T, factory func(t testing.TB) sandbox.Sandbox, opts ...Option) {
	t.Helper()
	s := &suite{options: options{boxes: -1, sessions: -1}, factory: factory}
	for _, opt := range opts {
		opt(&s.options)
	}
	s.defaults()
	s.markers.Store(900_000_000 + rand.Int64N(99_000_000))
	groups := s.all()
	for _, name := range s.groups {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == name }) {
			t.Fatalf("sandboxtest.Groups(%q): there is no such group", name)
		}
	}
	t.Cleanup(func() {
		if len(s.skipped) > 0 {
			t.Logf("left out:\n%s", strings.Join(s.skipped, "\n"))
		}
	})
	for _, g := range groups {
		if len(s.groups) > 0 && !slices.Contains(s.groups, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			g.test(t)
		})
	}
}

// A group is the cases of one section, which share a box where they can.
type group struct {
	name string
	test func(*testing.T)
}

// all are the groups, those that take longest first: the others fill in the gaps.
func (s *suite) all() []group {
	return []group{
		{"Zoo", s.zoo},
		{"ZooOften", s.zooOften},
		{"Time", s.time},
		{"Interaction", s.interaction},
		{"Concurrency", s.concurrency},
		{"ShellEnd", s.shellEnd},
		{"Adversary", s.adversary},
		{"Run", s.run},
		{"Background", s.background},
		{"Output", s.output},
		{"Life", s.life},
		{"State", s.state},
		{"Syntax", s.syntax},
		{"User", s.user},
		{"Network", s.network},
		{"Files", s.files},
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

// defaults fills in what no option has said.
func (s *suite) defaults() {
	if s.boxes < 0 {
		s.boxes = s.few(5, 20)
	}
	if s.sessions < 0 {
		s.sessions = s.few(10, 50)
	}
	if len(s.fourths) == 0 {
		s.fourths = []int{0}
	}
}

// skip leaves a case out, for a reason that is listed in the end.
func (s *suite) skip(t testing.TB, reason string) {
	t.Helper()
	s.mu.Lock()
	s.skipped = append(s.skipped, t.Name()+": "+reason)
	s.mu.Unlock()
	t.Skip(reason)
}

// few is the first of two counts, and the second with Full.
func (s *suite) few(few, full int) int {
	if s.full {
		return full
	}
	return few
}

// count is n with Full, and else a tenth of it.
func (s *suite) count(n int) int { return s.few(n/10, n) }
