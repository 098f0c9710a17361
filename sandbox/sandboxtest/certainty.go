package sandboxtest

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A truth says whether a command can go on without an answer.
type truth int

const (
	asks  truth = iota // nothing of the command goes on without an answer
	both               // it asks, and something of it goes on; or nobody can tell
	works              // it wants no answer, though something of it may read the terminal
)

func (t truth) String() string { return [...]string{"asks", "both", "works"}[t] }

// A trial is a command of which the truth is known. The session must not take work for a question.
type trial struct {
	name    string
	truth   truth
	needs   string // programs, separated by spaces: without one, the trial is skipped
	when    string // a script: if it fails, the trial is skipped
	setup   string // a command before
	command string
	shows   string // what a command that goes on prints before
	answer  string // what ends a command that asks; "": it is killed
	after   string // a script that ends what the trial has started, in the trial's directory

	// mayGoOn says why a command that asks may be reported as one that may go on, or is "".
	mayGoOn string
	own     bool // it is a program of ours: see certaintyOften
}

// Values of mayGoOn.
const (
	wakesUp = "it wakes up by itself, for what no kernel knows"
	ownTCP  = "the other end of a TCP connection is not looked for in a single process"
	inPool  = "its main thread waits for another thread, beside a runtime's clocks"
)

const (
	// patience is how long a command that may go on must be quiet by default: see sandbox.Patience.
	patience = 5 * time.Second
	// trialKeepers is how many trials run at once, at most.
	trialKeepers = 10
	// soon is the limit between soon and late. The logged tables count late answers, but no test
	// fails because of them.
	soon = 100 * time.Millisecond
)

// certainty runs all trials with Full and EveryTrial, otherwise those of some quarters.
func (s *suite) certainty(t *testing.T) {
	b := s.box(t)
	trials := allTrials(b.bash)
	if !s.full && !s.everyTrial {
		trials = slices.Collect(func(yield func(trial) bool) {
			var seen [works + 1]int
			for _, r := range trials {
				fourth := seen[r.truth] % 4
				seen[r.truth]++
				if slices.Contains(s.fourths, fourth) && !yield(r) {
					return
				}
			}
		})
	}
	watch := worksFor
	if s.full {
		watch += patience
	}
	b.tryTrials(t, trials, watch)
}

// certaintyOften runs the programs of ours fifty times each while two processors are busy: the
// answers must not change because the machine is slow.
func (s *suite) certaintyOften(t *testing.T) {
	if !s.full {
		s.skip(t, "thousands of commands take minutes: use Full")
	}
	if s.plain {
		s.skip(t, "PlainSSHD: its script is slow on a busy machine")
	}
	b := s.box(t)
	for range 2 {
		b.busy(t)
	}
	var often []trial
	for i := range 50 {
		for _, r := range allTrials(b.bash) {
			if r.own {
				r.name = fmt.Sprintf("%s/%d", r.name, i+1)
				often = append(often, r)
			}
		}
	}
	b.tryTrials(t, often, worksFor)
}

// A laboratory is what trials share.
type laboratory struct {
	b        *box
	programs *askingPrograms
	watch    time.Duration // how long a command that works is watched
	told     tally
}

// tryTrials runs trials, as many at once as Sessions says, and logs what was told. A command that
// works is watched for a time.
func (b *box) tryTrials(t *testing.T, trials []trial, watch time.Duration) {
	lab := &laboratory{b: b, programs: b.askingPrograms(t), watch: watch}
	keepers := min(max(b.suite.sessions, 1), trialKeepers)
	flag.Visit(func(f *flag.Flag) { // go test -parallel 1 measures each trial alone
		if f.Name == "test.parallel" && f.Value.String() == "1" {
			keepers = 1
		}
	})
	atOnce(keepers, trials, func(r trial) {
		t.Run(r.name, func(t *testing.T) { r.run(t, lab) })
	})
	t.Logf("what was told, by what is true:\n%s", lab.told.String())
}

func (r trial) run(t *testing.T, lab *laboratory) {
	b, programs := lab.b, lab.programs
	programs.need(t, b, r.needs)
	sh := b.open(t)
	if r.after != "" {
		t.Cleanup(func() { b.sh(t, "cd \"$1\"\n"+r.after, sh.dir) })
	}
	sh.output("HOME=$PWD; TMPDIR=$PWD; TERM=xterm; LC_ALL=C.UTF-8; P=" + quote(programs.dir) +
		"; export HOME TMPDIR TERM LC_ALL P")
	if r.when != "" && sh.exec(r.when).ExitCode != 0 {
		b.suite.skip(t, "does not apply to this box: "+brief(r.when)+" fails")
	}
	if r.setup != "" {
		sh.output(r.setup)
	}
	switch r.truth {
	case asks:
		r.isTold(sh, lab)
	default:
		r.isWatched(sh, lab)
	}
	sh.close() // kills what is left
}

// isTold checks that a command that asks is reported as waiting, and as one that cannot go on,
// unless mayGoOn says why not. On a busy machine it may first be reported as one that may go on.
// How long after its last output it is told is logged, and fails no test: see soon.
func (r trial) isTold(sh *shell, lab *laboratory) {
	sh.t.Helper()
	var w observed
	begun := time.Now()
	res := w.exec(sh, r.command, sandbox.Yield(asksWithin))
	lab.told.add(r, w.told(res), w.after())
	if sh.b.suite.plain && (res.State == sandbox.Running || res.MayGoOn) {
		return // the script sees too little
	}
	for res.MayGoOn && r.mayGoOn == "" && time.Since(begun) < asksWithin {
		res = w.wait(sh, sandbox.Yield(asksWithin))
	}
	if res.State != sandbox.Waiting || res.MayGoOn && r.mayGoOn == "" {
		sh.t.Fatalf("want a command that asks and cannot go on, got %s", show(res))
	}
	if r.answer != "" {
		exited(sh.t, sh.input(r.answer, sandbox.Yield(asksWithin)))
	}
}

// isWatched checks that a command that goes on by itself is never reported as one that cannot go
// on. A command that also asks may be reported so.
func (r trial) isWatched(sh *shell, lab *laboratory) {
	sh.t.Helper()
	var w observed
	until := []sandbox.ExecOption{sandbox.Yield(lab.watch)}
	if r.shows != "" {
		until = []sandbox.ExecOption{sandbox.Yield(asksWithin),
			sandbox.Until(regexp.MustCompile(regexp.QuoteMeta(r.shows)))}
	}
	begun := time.Now()
	first := r.goesOn(sh, &w, w.exec(sh, r.command, until...))
	for !strings.Contains(w.output.String(), r.shows) {
		if time.Since(begun) > asksWithin {
			sh.t.Fatalf("it has not shown %q: %s", r.shows, brief(w.output.String()))
		}
		first = min(first, r.goesOn(sh, &w, w.wait(sh, until...)))
	}
	more := r.truth == works || r.shows != ""
	for end := time.Now().Add(lab.watch); more && time.Now().Before(end); {
		first = min(first, r.goesOn(sh, &w, w.wait(sh, sandbox.Yield(time.Until(end)))))
	}
	lab.told.add(r, first, w.after())
}

// goesOn checks what a Result says of a command that goes on, and returns what the Result has told.
func (r trial) goesOn(sh *shell, w *observed, res *sandbox.Result) telling {
	sh.t.Helper()
	n := w.told(res)
	if res.State == sandbox.Exited {
		sh.t.Fatalf("want a command that goes on, got %s", show(res))
	}
	if r.truth == works && res.State == sandbox.Waiting && !res.MayGoOn {
		sh.t.Errorf("it works, and was told as one that cannot go on: %s", show(res))
	}
	return n
}

// An observed command remembers when it last printed something.
type observed struct {
	mu     sync.Mutex
	last   time.Time
	output strings.Builder
}

func (w *observed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	return len(p), nil
}

func (w *observed) exec(sh *shell, command string, opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	w.last = time.Now()
	return w.saw(sh.exec(command, append(opts, sandbox.Tee(w))...))
}

func (w *observed) wait(sh *shell, opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return w.saw(sh.wait(append(opts, sandbox.Tee(w))...))
}

// saw adds what was printed to output.
func (w *observed) saw(res *sandbox.Result) *sandbox.Result {
	w.output.WriteString(res.Output)
	return res
}

// after returns how long ago the command last printed something, or began.
func (w *observed) after() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}
