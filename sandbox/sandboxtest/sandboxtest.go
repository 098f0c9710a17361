// Package sandboxtest is a conformance suite for any implementation of [sandbox.Sandbox]. Its cases
// are the problems that users of such systems have met.
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
// The groups of cases are parallel subtests: Run returns at once, and they run after the calling
// test has returned. What must happen after them belongs in a Cleanup, not after Run or in a defer.
//
// # What a box needs
//
// A box needs a POSIX shell (bash, dash or busybox ash; the suite finds out which), /dev/null,
// /dev/tty, a writable /tmp and the standard utilities. The suite looks for everything else before
// it uses it. A case is skipped, with the reason, if the box lacks its program (python3, less,
// sudo, …), if the box's shell lacks its feature (arrays, [[ ]]), or if a method returns
// [errors.ErrUnsupported]. After the last case, the suite logs all that were skipped.
//
// No case needs a network, and none changes the machine of the box: files are in temporary
// directories, and questions that would change more are answered with no.
//
// # Groups, sections, cases
//
// A group has a box, most cases have a session of their own in that box. The name of a section
// begins with its number, as in TestConformance/Syntax/03_HereDocuments. A call fails if it takes
// longer than a minute. If it does not return after its context has ended, the failure shows the
// stacks of all goroutines.
//
// The groups Zoo and Certainty are tables. Each row is a command, and each row is a case. A row of
// Zoo waits for input of one kind, or works: the session must tell which. A row of Certainty asks,
// works, or does both at once: the session must never report work as a question. ZooOften and
// CertaintyOften run some of these rows many times while processors are busy, and only with [Full].
// Without Full, Zoo and Certainty run one quarter of their rows: see [Fourths]. The group Adversary
// has programs, files and users that try to change what a session executes, shows or reports.
//
// # How long it takes
//
// The cases wait more than they work. The flag -parallel of go test says how many run at once: four
// times the number of processors keeps these busy. [Full] adds repetitions and large copies, and
// [Groups] chooses what to run.
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

	plain      bool
	groups     []string
	fourths    []int
	everyTrial bool
}

// Boxes sets how many sandboxes Concurrency/48_Boxes makes at once. The default is 5, with [Full]
// 20. If n is 0, the case is skipped.
func Boxes(n int) Option { return func(o *options) { o.boxes = n } }

// Sessions sets how many sessions Concurrency/48_Sessions opens in one sandbox at once. The default
// is 10, with [Full] 50. If n is 0, the case is skipped. The groups Zoo and Certainty open as many,
// but 10 at most.
func Sessions(n int) Option { return func(o *options) { o.sessions = n } }

// Full runs the suite at full size, for a nightly run. Cases that find rare failures repeat up to
// 1,000 times and move up to 100 MB. All rows of Zoo and Certainty run, some of them fifty or a
// hundred times. Without Full, cases repeat a tenth as often, and a quarter of these rows run: see
// [Fourths] and [EveryTrial].
func Full() Option { return func(o *options) { o.full = true } }

// Groups chooses the groups to run, by their names: Syntax, Output, State, ShellEnd, Interaction,
// Time, Background, Run, Files, Network, Life, Concurrency, User, Zoo, ZooOften, Certainty,
// CertaintyOften, Adversary. Any other name fails the test. The default is all.
//
// Groups is for a second kind of box on the same engine, whose tests only need to show the
// transport.
func Groups(names ...string) Option {
	return func(o *options) { o.groups = append(o.groups, names...) }
}

// Fourths chooses which rows of the groups Zoo and Certainty run without [Full]. The suite divides
// the rows into four quarters, numbered 0 to 3, and runs those of n. Several kinds of boxes that
// look at programs in the same way can divide the quarters among them. The default is quarter 0,
// which also has all rows of Zoo that [PlainSSHD] skips.
func Fourths(n ...int) Option { return func(o *options) { o.fourths = n } }

// EveryTrial runs all rows of Certainty, as [Full] does. Full also watches each row longer, and
// EveryTrial does not.
func EveryTrial() Option { return func(o *options) { o.everyTrial = true } }

// PlainSSHD is for a box over a plain sshd, without a program of its own on the other side. Such a
// box looks at programs by a script. Cases that the script cannot decide are skipped. Nor does the
// box see how much of its input a terminal has echoed. While a program prints, Linux drops echo
// that does not fit a buffer of 4 KiB, so Interaction/27_Input does not demand all of it.
func PlainSSHD() Option { return func(o *options) { o.plain = true } }

// Run runs the suite, in parallel subtests of t.
//
// The factory returns a new sandbox each time. It is called from several goroutines at once, about
// 25 times, and once more for each of [Boxes]. All these sandboxes may exist at the same time. The
// suite closes every sandbox; the factory may register a Cleanup that closes it again.
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
			t.Fatalf("sandboxtest.Groups(%q): there is no such group: see its documentation", name)
		}
	}
	t.Cleanup(func() {
		if len(s.skipped) > 0 {
			t.Logf("skipped:\n%s", strings.Join(s.skipped, "\n"))
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

// A group is a subtest of Run. Its cases share a box where they can.
type group struct {
	name string
	test func(*testing.T)
}

// all returns the groups. Those that take longest come first, so that the others fill the gaps.
func (s *suite) all() []group {
	return []group{
		{"Certainty", s.certainty},
		{"CertaintyOften", s.certaintyOften},
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

	programs sync.Map     // a program's name → bool: whether the boxes have it
	markers  atomic.Int64 // the last marker

	mu      sync.Mutex
	skipped []string
}

// defaults sets what no option has set.
func (s *suite) defaults() {
	if s.boxes < 0 {
		s.boxes = s.pick(5, 20)
	}
	if s.sessions < 0 {
		s.sessions = s.pick(10, 50)
	}
	if len(s.fourths) == 0 {
		s.fourths = []int{0}
	}
}

// skip skips a case, for a reason that is logged after the last case.
func (s *suite) skip(t testing.TB, reason string) {
	t.Helper()
	s.mu.Lock()
	s.skipped = append(s.skipped, t.Name()+": "+reason)
	s.mu.Unlock()
	t.Skip(reason)
}

// pick returns few, or full with the option Full.
func (s *suite) pick(few, full int) int {
	if s.full {
		return full
	}
	return few
}

// count returns a tenth of n, or n with the option Full.
func (s *suite) count(n int) int { return s.pick(n/10, n) }
