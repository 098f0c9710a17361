package sandboxtest

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A situation is a program in a state that a session has to tell rightly: it waits for input of a
// kind, or it works.
type situation struct {
	name    string
	needs   string // programs, between spaces: where the box lacks one, the row is left out
	bash    bool   // only where the session's own shell is bash
	when    string // a script that fails where the row does not apply
	setup   string // a command of the session before
	command string

	// what it waits for; 0: it never waits while it is looked at, and goes on
	asks sandbox.InputKind
	// what it may be said to wait for instead: builds of the program differ
	or     sandbox.InputKind
	shows  string // what it has shown by then, in Output or on the Screen
	answer string // typed then; none: it is interrupted
	// what it waits for after the answer, or else; then it is interrupted. 0: the answer ends it
	then sandbox.InputKind
	says string // what the answer's Output holds, or the Screen
	code int    // the exit status after the answer

	computes bool   // it takes a processor all the time; set for zooBusy
	restarts bool   // the shell ends with it
	check    string // a command of the session that succeeds after it
	after    string // a script that ends, in the row's directory, what the row has left running

	// plain says why a session over a plain sshd cannot tell: its script knows less than boxd.
	// Empty where it can.
	plain string
}

// Why the script does not see it.
const (
	plainPolls   = "which descriptors a poll or a select asks for lies in the program's memory"
	plain32      = "the numbers of a 32-bit program's system calls are others"
	plainOrphans = "the script goes from parents to children, and this is nobody's child"
)

const (
	// how long a program that works is: beyond the quiet second after which a guess is due
	lookedAt = 2200 * time.Millisecond
	// the same of one that computes: it has begun soon, and takes the others their time
	burnsFor = 1400 * time.Millisecond
	// how long a program that asks has until Waiting is said, of the minute that the call has: a
	// loaded machine starts Python in 15 s
	answered = limit - 10*time.Second
	zooKeep  = 10 // how many sessions there are at once, at most
)

// zoo runs the situations, without Full those of some fourths.
func (s *suite) zoo(t *testing.T) {
	b := s.box(t)
	rows := situations(b.bash)
	if !s.full {
		rows = slices.Collect(func(yield func(situation) bool) {
			for i, r := range rows {
				fourth := i % 4
				// a plain sshd leaves it out, so that another place has to have it
				if r.plain != "" {
					fourth = 0
				}
				if slices.Contains(s.fourths, fourth) && !yield(r) {
					return
				}
			}
		})
	}
	s.try(t, b, rows)
}

// try runs situations, Sessions of them at once. They sleep more than they work: they are no
// parallel tests, of which there are as many as processors.
func (s *suite) try(t *testing.T, b *box, rows []situation) {
	next := make(chan situation)
	var keepers sync.WaitGroup
	for range min(max(s.sessions, 1), zooKeep) {
		keepers.Go(func() {
			for r := range next {
				t.Run(r.name, func(t *testing.T) { r.run(t, b) })
			}
		})
	}
	for _, r := range rows {
		next <- r
	}
	close(next)
	keepers.Wait()
}

// situations is the table: those that wait among those that work, so that no time is all sleep or
// all work. everything is false where only the session's shell is another than elsewhere: what
// differs then are the shell's own ways to read.
func situations(everything bool) []situation {
	if !everything {
		return zooShells
	}
	waiting := slices.Concat(zooShells, zooTools, zooSystem, zooPython, zooLanguages, zooREPLs,
		zooFullScreen, zooQuestions, zooGit, zooSecrets, zooRelays, zooPeers)
	working := slices.Concat(zooIdle, zooSilent)
	for i, r := range zooBusy {
		r.computes = true
		working = slices.Insert(working, i*len(working)/len(zooBusy), r) // not all at once
	}
	var all []situation
	for len(waiting) > 0 || len(working) > 0 {
		n := min(2, len(waiting))
		m := min(1, len(working))
		all = append(append(all, waiting[:n]...), working[:m]...)
		waiting, working = waiting[n:], working[m:]
	}
	return all
}

// applies skips the row, by name, where the box does not have what it takes.
func (r situation) applies(t *testing.T, b *box) {
	t.Helper()
	if r.bash && !b.bash {
		b.suite.skip(t, "the session's shell is not bash")
	}
	for program := range strings.FieldsSeq(r.needs) {
		if !b.has(t, program) {
			b.suite.skip(t, "no "+program+" in this box")
		}
	}
	if r.plain != "" && b.suite.plain {
		b.suite.skip(t, "not to be told over a plain sshd: "+r.plain)
	}
}

func (r situation) run(t *testing.T, b *box) {
	r.applies(t, b)
	sh := b.open(t)
	if r.when != "" {
		if code, _, _ := b.sh(t, "cd \"$1\"\n"+r.when, sh.dir); code != 0 {
			b.suite.skip(t, "does not apply to this box: "+brief(r.when)+" fails")
		}
	}
	if r.after != "" {
		t.Cleanup(func() { b.sh(t, "cd \"$1\"\n"+r.after, sh.dir) })
	}
	// what fish and mc leave goes with the directory
	sh.output("HOME=$PWD; TMPDIR=$PWD; TERM=xterm; LC_ALL=C.UTF-8; export HOME TMPDIR TERM LC_ALL")
	if r.setup != "" {
		sh.output(r.setup)
	}
	var res *sandbox.Result
	if r.asks == 0 {
		res = r.works(sh)
	} else {
		res = r.isAnswered(sh)
	}
	if r.check != "" {
		sh.output(r.check)
	}
	// has the shell's words on what has ended; and bash 5.2 dies now and then of a ^C between two
	// forks: see timeouts
	next := sh.exec(":")
	if res.Restarted || next.Restarted {
		sh.usable()
	} else {
		sh.lives()
	}
}

// works checks that the program goes on, unasked, and interrupts it.
func (r situation) works(sh *shell) *sandbox.Result {
	sh.t.Helper()
	watched := lookedAt
	if r.computes {
		watched = burnsFor
	}
	res := sh.exec(r.command, sandbox.Yield(watched))
	running(sh.t, res)
	// a slow machine has not even begun
	for end := time.Now().Add(answered); !r.has(sh, r.shows, res) && time.Now().Before(end); {
		res = sh.wait(sandbox.Yield(watched))
		running(sh.t, res)
	}
	r.showed(sh, "shows", r.shows, res)
	if r.answer != "" {
		running(sh.t, sh.input(r.answer, sandbox.Yield(lookedAt/4)))
	}
	return sh.interrupt()
}

// isAnswered checks that the program waits for what it waits for, and answers.
func (r situation) isAnswered(sh *shell) *sandbox.Result {
	sh.t.Helper()
	res := sh.exec(r.command, sandbox.Yield(answered))
	waiting(sh.t, res, r.asks, r.or)
	r.showed(sh, "shows", r.shows, res)
	if r.answer == "" {
		return sh.interrupt()
	}
	res = sh.input(r.answer, sandbox.Yield(answered))
	r.showed(sh, "says", r.says, res)
	if r.then != 0 {
		waiting(sh.t, res, r.then, r.or)
		return sh.interrupt()
	}
	exited(sh.t, res, r.code)
	require.Equalf(sh.t, r.restarts, res.Restarted, "Restarted: %s", show(res))
	return res
}

// has reports whether text has come, in a Result or on the screen.
func (r situation) has(sh *shell, text string, res *sandbox.Result) bool {
	sh.t.Helper()
	return strings.Contains(res.Output, text) ||
		strings.Contains(strings.Join(sh.screen().Lines, "\n"), text)
}

// showed checks that text has come, in a Result or on the screen.
func (r situation) showed(sh *shell, field, text string, res *sandbox.Result) {
	sh.t.Helper()
	if !r.has(sh, text, res) {
		screen := strings.Join(sh.screen().Lines, "\n")
		sh.t.Fatalf("%s: neither in the output nor on the screen is %q: %s\nscreen:\n%s", field,
			text, show(res), regexp.MustCompile(`\s*\n\s*\n`).ReplaceAllString(screen, "\n"))
	}
}
