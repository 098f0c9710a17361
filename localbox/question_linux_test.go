package localbox

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A class is what a look says of the rest of the command.
type class int32

const (
	alone      class = iota + 1 // nothing else goes on
	othersRun                   // other programs go on
	itselfRuns                  // the program that reads goes on
	othersBusy                  // as othersRun, and they run at the time of the look
)

// A scripted host says of each program that reads the terminal what the test wants.
type scripted struct {
	*host
	class atomic.Int32
	other func(look int32) class // if not nil: of this look; 0: that nothing reads
	looks atomic.Int32
}

func (s *scripted) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	l, err := s.host.Look(ctx, p)
	if len(l.Waits) == 0 {
		return l, err
	}
	c := class(s.class.Load())
	if n := s.looks.Add(1); s.other != nil {
		c = s.other(n)
	}
	if c == 0 {
		l.Waits = nil
		return l, err
	}
	l.Waits[0].Alone = c != itselfRuns
	l.Waits[0].OthersRun, l.Runs = c == othersRun || c == othersBusy, c == othersBusy
	return l, err
}

// set sets what looks say from now on.
func (s *scripted) set(c class) { s.class.Store(int32(c)) }

// A questioner makes calls whose errors are the test's.
type questioner struct {
	*shellbox.Box
	*scripted
	t *testing.T
}

func newQuestioner(t *testing.T, c class, other func(int32) class) *questioner {
	t.Parallel()
	h := &scripted{host: &host{}, other: other}
	box, err := shellbox.New(t.Context(), h, shellbox.Options{Logger: testenv.Logger(t)})
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	h.set(c)
	return &questioner{box, h, t}
}

// run executes a command, or waits if command is "", and returns the Result and how long it took.
func (q *questioner) run(command string, opts ...sandbox.ExecOption) (*sandbox.Result,
	time.Duration) {
	q.t.Helper()
	began := time.Now()
	var r *sandbox.Result
	var err error
	if command == "" {
		r, err = q.Box.Wait(q.t.Context(), opts...)
	} else {
		r, err = q.Box.Execute(q.t.Context(), command, opts...)
	}
	require.NoError(q.t, err)
	return r, time.Since(began)
}

// waits checks that r is a question.
func (q *questioner) waits(r *sandbox.Result, mayGoOn bool) {
	q.t.Helper()
	require.Equal(q.t, sandbox.Waiting, r.State)
	require.Equal(q.t, mayGoOn, r.MayGoOn)
	require.NotZero(q.t, r.Awaits)
}

// started makes a call in another goroutine. It returns when the call has been told of nothing for
// some looks.
func (q *questioner) started(opts ...sandbox.ExecOption) <-chan *sandbox.Result {
	done := make(chan *sandbox.Result, 1)
	go func() {
		r, _ := q.Box.Wait(q.t.Context(), opts...)
		done <- r
	}()
	enough := q.looks.Load() + 10
	for q.looks.Load() < enough {
		select {
		case r := <-done:
			q.t.Fatalf("the call has returned %+v", r)
		case <-time.After(time.Millisecond):
		}
	}
	return done
}

const (
	little = 60 * time.Millisecond
	long   = time.Hour
)

// Of what is certain, each call is told at once, whatever its Patience.
func TestCertainQuestion(t *testing.T) {
	q := newQuestioner(t, alone, nil)
	r, _ := q.run("read -r x", sandbox.Patience(-1))
	q.waits(r, false)
	r, _ = q.run("", sandbox.Patience(long))
	q.waits(r, false)
	r, _ = q.run("")
	q.waits(r, false)
}

// A command that may go on is told once at once or after a time, and then only after a time, or
// when it is certain to wait. That needs no output.
func TestMayGoOn(t *testing.T) {
	for _, c := range []class{othersRun, itselfRuns} {
		t.Run("", func(t *testing.T) {
			q := newQuestioner(t, c, nil)
			r, took := q.run("read -r x", sandbox.Patience(little))
			q.waits(r, true)
			require.GreaterOrEqual(t, took, little)
			r, took = q.run("", sandbox.Patience(little))
			q.waits(r, true)
			require.GreaterOrEqual(t, took, little)
			done := q.started()
			q.set(alone)
			q.waits(<-done, false)

			q.set(c)
			r, err := q.Input(t.Context(), "x\n")
			require.NoError(t, err)
			require.Equal(t, sandbox.Exited, r.State)
		})
	}
	t.Run("AtOnce", func(t *testing.T) {
		q := newQuestioner(t, othersRun, nil)
		r, took := q.run("read -r x")
		q.waits(r, true)
		require.Less(t, took, 4*time.Second)
	})
}

// A program beside the one that reads may run at some looks, because it is about to end. That is
// not told. If it goes on running, the command is told after the time.
func TestOthersBusy(t *testing.T) {
	t.Run("ForAMoment", func(t *testing.T) {
		q := newQuestioner(t, 0, func(look int32) class {
			if look <= 2*4 { // twice as many as have to agree on a busy machine
				return othersBusy
			}
			return alone
		})
		r, _ := q.run("read -r x")
		q.waits(r, false)
	})
	t.Run("Always", func(t *testing.T) {
		q := newQuestioner(t, othersBusy, nil)
		r, took := q.run("read -p 'name? ' x")
		q.waits(r, true)
		require.GreaterOrEqual(t, took, time.Second)
	})
}

// Each call has its own Patience. The end of the command ends each call.
func TestPatienceOfEachCall(t *testing.T) {
	q := newQuestioner(t, itselfRuns, nil)
	r, _ := q.run("read -r x; echo $x", sandbox.Patience(little))
	q.waits(r, true)
	keeps := q.started(sandbox.AtQuestion(sandbox.KeepWaiting), sandbox.Patience(little))
	never, later := q.started(sandbox.Patience(-1)), q.started(sandbox.Patience(long))
	r, _ = q.run("", sandbox.Patience(little))
	q.waits(r, true)
	r, _ = q.run("", sandbox.Yield(little))
	require.Equal(t, sandbox.Running, r.State)
	q.set(alone)
	q.waits(<-never, false)
	q.waits(<-later, false)
	require.NoError(t, q.Type(t.Context(), "a\n"))
	require.Equal(t, sandbox.Exited, (<-keeps).State)
}

// Output after a question that was told makes it a new one: its time counts from the output.
func TestMayGoOnAfterOutput(t *testing.T) {
	q := newQuestioner(t, itselfRuns, nil)
	r, _ := q.run("mkfifo go; cat <>go & read -r x", sandbox.Patience(little))
	q.waits(r, true)
	done := q.started(sandbox.Patience(20 * little))
	wrote := time.Now()
	_, err := q.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", "echo late >go"}})
	require.NoError(t, err)
	r = <-done
	q.waits(r, true)
	if r.Output == "" { // the call was told just before
		r, _ = q.run("", sandbox.Patience(little))
		q.waits(r, true)
	} else {
		require.GreaterOrEqual(t, time.Since(wrote), 20*little)
	}
	require.Equal(t, "late\n", r.Output)
}

// Single looks in which a thread of the program works, or in which the program does not read, undo
// nothing. Three looks that say that nothing goes on make it certain.
func TestLooksThatDiffer(t *testing.T) {
	q := newQuestioner(t, 0, func(look int32) class {
		switch {
		case look%5 == 0:
			return 0
		case look%5 < 3:
			return alone
		}
		return itselfRuns
	})
	r, took := q.run("read -r x", sandbox.Patience(10*little))
	q.waits(r, true)
	require.GreaterOrEqual(t, took, 10*little)
	q = &questioner{q.Box, &scripted{}, t}
	r, err := q.Input(t.Context(), "x\n")
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, r.State)
}

// On a busy machine three looks take longer than the time after which a question that may not be
// one is told.
func TestCertainBySlowLooks(t *testing.T) {
	q := newQuestioner(t, 0, func(int32) class {
		time.Sleep(400 * time.Millisecond)
		return alone
	})
	r, _ := q.run("read -p 'name? ' x")
	q.waits(r, false)
}

// AtQuestion acts on what is certain. It acts on a command that may go on only if the call has a
// Patience.
func TestPolicyMayGoOn(t *testing.T) {
	for _, c := range []class{othersRun, itselfRuns} {
		t.Run("Fail", func(t *testing.T) {
			q, fail := newQuestioner(t, c, nil), sandbox.AtQuestion(sandbox.Fail)
			r, _ := q.run("read -r x", fail, sandbox.Yield(10*little))
			require.Equal(t, sandbox.Running, r.State)
			_, err := q.Box.Wait(t.Context(), fail, sandbox.Patience(little))
			require.ErrorIs(t, err, sandbox.ErrQuestion)
			r, _ = q.run("read -r x", fail, sandbox.Yield(little))
			require.Equal(t, sandbox.Running, r.State)
			q.set(alone)
			_, err = q.Box.Wait(t.Context(), fail)
			require.ErrorIs(t, err, sandbox.ErrQuestion)
		})
		t.Run("EndInput", func(t *testing.T) {
			q, end := newQuestioner(t, c, nil), sandbox.AtQuestion(sandbox.EndInput)
			r, _ := q.run("cat; echo end", end, sandbox.Yield(10*little))
			require.Equal(t, sandbox.Running, r.State)
			r, _ = q.run("", end, sandbox.Patience(little))
			require.Equal(t, sandbox.Exited, r.State)
			require.Equal(t, "end\n", r.Output)
			// in raw mode, ^D is a key
			r, _ = q.run("stty raw; head -c 1 | od -c; stty sane", end, sandbox.Patience(little))
			q.waits(r, true)
			r, err := q.Input(t.Context(), "k")
			require.NoError(t, err)
			require.Contains(t, r.Output, "k")
		})
	}
}

// Without Patience, it is a second if the terminal shows a question, and five if not.
func TestDefaultPatience(t *testing.T) {
	testenv.NeedsAll(t, "it takes ten seconds; TestMayGoOn has a short Patience")
	for command, patience := range map[string]time.Duration{
		`printf "name? "; read -r x`: time.Second,
		`read -rs x`:                 time.Second,
		`read -rsn1 x`:               time.Second,
		`echo "name?"; read -r x`:    5 * time.Second,
	} {
		t.Run("", func(t *testing.T) {
			q := newQuestioner(t, itselfRuns, nil)
			r, took := q.run(command)
			q.waits(r, true)
			require.GreaterOrEqual(t, took, patience)
			if patience == time.Second {
				require.Less(t, took, 5*time.Second)
			}
			r, took = q.run("")
			q.waits(r, true)
			require.GreaterOrEqual(t, took, 5*time.Second)
		})
	}
}
