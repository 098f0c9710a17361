package sandboxtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A situation is a command that waits for input of a kind, or works. The session must tell which.
type situation struct {
	name    string
	needs   string // programs, separated by spaces: without one, the row is skipped
	bash    bool   // the session's shell must be bash
	when    string // a script: if it fails, the row is skipped
	setup   string // a command before
	command string

	asks   sandbox.InputKind // what it waits for; 0: it works
	or     sandbox.InputKind // what other builds of the program wait for
	shows  string            // what Output or the Screen has by then
	answer string            // the input then; "": it is interrupted
	// what it waits for after the answer, when it is interrupted; 0: the answer ends it
	then sandbox.InputKind
	says string // what Output or the Screen has after the answer
	code int    // the exit status after the answer

	computes bool   // it keeps a processor busy; set for zooBusy
	restarts bool   // it ends the shell
	check    string // a command after it, which must succeed
	after    string // a script that ends what the row has started, in the row's directory

	// plain says why a box over a plain sshd cannot tell, or is "".
	plain string
}

// Values of plain. Such a box looks at programs by a script, which sees less than boxd does.
const (
	plainPolls   = "the descriptors of a poll or select are in the program's memory"
	plain32      = "a 32-bit program has other numbers of system calls"
	plainOrphans = "the script finds only the shell's descendants, and this process is none"
)

const (
	// worksFor is how long a command that works is watched. An implementation may guess after a
	// quiet second.
	worksFor = 2200 * time.Millisecond
	// computesFor is the same for a command that computes. It begins soon, and slows down the
	// others.
	computesFor = 1400 * time.Millisecond
	// asksWithin is how long a command that asks may take to wait. A busy machine starts Python in
	// 15 s.
	asksWithin = limit - 10*time.Second
	// zooKeepers is how many rows run at once, at most.
	zooKeepers = 10
)

// zoo runs the rows of the table. Without Full, it runs some quarters of them.
func (s *suite) zoo(t *testing.T) {
	b := s.box(t)
	rows := situations(b.bash)
	if !s.full {
		rows = slices.Collect(func(yield func(situation) bool) {
			for i, r := range rows {
				fourth := i % 4
				if r.plain != "" { // PlainSSHD skips it, so another box must run it
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

// try runs rows, as many at once as Sessions says. They are no parallel tests, because they sleep
// more than they work.
func (s *suite) try(t *testing.T, b *box, rows []situation) {
	atOnce(min(max(s.sessions, 1), zooKeepers), rows, func(r situation) {
		t.Run(r.name, func(t *testing.T) { r.run(t, b) })
	})
}

// atOnce calls f with each row, n at once.
func atOnce[T any](n int, rows []T, f func(T)) {
	next := make(chan T)
	var keepers sync.WaitGroup
	for range n {
		keepers.Go(func() {
			for r := range next {
				f(r)
			}
		})
	}
	for _, r := range rows {
		next <- r
	}
	close(next)
	keepers.Wait()
}

// situations returns the table. It mixes rows that wait, work and compute, to spread the load. If
// everything is false, it returns only the rows that depend on the session's shell.
func situations(everything bool) []situation {
	if !everything {
		return zooShells
	}
	waiting := slices.Concat(zooShells, zooTools, zooSystem, zooPython, zooLanguages, zooREPLs,
		zooFullScreen, zooQuestions, zooGit, zooSecrets, zooRelays, zooPeers)
	working := slices.Concat(zooIdle, zooSilent)
	for i, r := range zooBusy {
		r.computes = true
		working = slices.Insert(working, i*len(working)/len(zooBusy), r)
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

// applies skips the row if the box lacks what it needs.
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
		b.suite.skip(t, "PlainSSHD: "+r.plain)
	}
}

func (r situation) run(t *testing.T, b *box) {
	r.applies(t, b)
	sh := b.open(t)
	if r.when != "" {
		b.needScript(t, "does not apply to this box: the script "+brief(r.when)+" fails",
			"cd \"$1\"\n"+r.when, sh.dir)
	}
	if r.after != "" {
		t.Cleanup(func() { b.sh(t, "cd \"$1\"\n"+r.after, sh.dir) })
	}
	// fish and mc leave files at home
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
	// the shell may report ended jobs now; bash 5.2 sometimes dies of a ^C: see timeouts
	next := sh.exec(":")
	sh.mayRestart = res.Restarted || next.Restarted
	sh.goesOn()
}

// works checks that the command is running all the time, and interrupts it.
func (r situation) works(sh *shell) *sandbox.Result {
	sh.t.Helper()
	watched := worksFor
	if r.computes {
		watched = computesFor
	}
	res := sh.exec(r.command, sandbox.Yield(watched))
	running(sh.t, res)
	// a busy machine may not have started it yet
	for end := time.Now().Add(asksWithin); !r.has(sh, r.shows, res) && time.Now().Before(end); {
		res = sh.wait(sandbox.Yield(watched))
		running(sh.t, res)
	}
	r.showed(sh, "shows", r.shows, res)
	if r.answer != "" {
		running(sh.t, sh.input(r.answer, sandbox.Yield(worksFor/4)))
	}
	return sh.interrupt()
}

// isAnswered checks that the command waits for the right kind of input, and answers.
func (r situation) isAnswered(sh *shell) *sandbox.Result {
	sh.t.Helper()
	res := sh.exec(r.command, sandbox.Yield(asksWithin))
	waiting(sh.t, res, r.asks, r.or)
	r.showed(sh, "shows", r.shows, res)
	if r.answer == "" {
		return sh.interrupt()
	}
	res = sh.input(r.answer, sandbox.Yield(asksWithin))
	r.showed(sh, "says", r.says, res)
	if r.then != 0 {
		waiting(sh.t, res, r.then, r.or)
		return sh.interrupt()
	}
	exited(sh.t, res, r.code)
	require.Equalf(sh.t, r.restarts, res.Restarted, "Restarted: %s", show(res))
	return res
}

// has reports whether Output or the screen has text.
func (r situation) has(sh *shell, text string, res *sandbox.Result) bool {
	sh.t.Helper()
	return strings.Contains(res.Output, text) ||
		strings.Contains(strings.Join(sh.screen().Lines, "\n"), text)
}

// showed checks that Output or the screen has text, which is a field of the row.
func (r situation) showed(sh *shell, field, text string, res *sandbox.Result) {
	sh.t.Helper()
	if !r.has(sh, text, res) {
		screen := strings.Join(sh.screen().Lines, "\n")
		sh.t.Fatalf("%s: neither Output nor the screen has %q: %s\nscreen:\n%s", field, text,
			show(res), regexp.MustCompile(`\s*\n\s*\n`).ReplaceAllString(screen, "\n"))
	}
}

// zooAgain names rows of Zoo: five that wait, each in another way, and five that only seem to.
var zooAgain = []string{
	"Read", "BashReadT", "catTTY", "PySelect", "PyGetpass",
	"Sleep", "WaitsForPipe", "Tail", "PySelectPipe", "PyAsyncioSleepCbreak",
}

// zooOften runs the rows of zooAgain a hundred times each while two processors are busy: the result
// must not depend on the machine's speed.
func (s *suite) zooOften(t *testing.T) {
	if !s.full {
		s.skip(t, "a thousand commands take minutes: use Full")
	}
	b := s.box(t)
	rows := slices.DeleteFunc(situations(true), func(r situation) bool {
		return !slices.Contains(zooAgain, r.name)
	})
	require.Len(t, rows, len(zooAgain))
	for range 2 {
		b.busy(t)
	}
	var often []situation
	for i := range 100 {
		for _, r := range rows {
			r.name = fmt.Sprintf("%s/%d", r.name, i+1)
			often = append(often, r)
		}
	}
	s.try(t, b, often)
}

// busy keeps a processor busy until the end of t.
func (b *box) busy(t *testing.T) {
	t.Helper()
	t.Cleanup(b.start(t, "while :; do :; done").kill)
}
