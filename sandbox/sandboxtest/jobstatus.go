package sandboxtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// status calls Status.
func (j *job) status() *sandbox.Result {
	j.t.Helper()
	res, err := within(j.b, j.t, "Job.Status", j.Status)
	require.NoError(j.t, err, "Status")
	require.Empty(j.t, res.Output, "Output of Status")
	return res
}

// untilCall returns a call of Until for within.
func (j *job) untilCall(opts ...sandbox.ExecOption) func(context.Context) (*sandbox.Result, error) {
	return func(ctx context.Context) (*sandbox.Result, error) { return j.Until(ctx, opts...) }
}

// until calls Until.
func (j *job) until(opts ...sandbox.ExecOption) *sandbox.Result {
	j.t.Helper()
	res, err := within(j.b, j.t, "Job.Until", j.untilCall(opts...))
	require.NoError(j.t, err, "Until")
	return res
}

// matching is the option that ends a call at a match of re.
func matching(re string) sandbox.ExecOption { return sandbox.Until(regexp.MustCompile(re)) }

// jobStatus asks how far jobs have got.
func jobStatus(t *testing.T, b *box) {
	for _, c := range []struct {
		name, command, needs string
		kind                 sandbox.InputKind
		mayGoOn              bool
	}{
		{"Line", `printf 'go on? '; read -r x; echo "got $x"; exit 3`, "", sandbox.Line, false},
		{"Secret", "stty -echo; read -r x; stty echo; exit 3", "", sandbox.Secret, false},
		{"Keys", "stty raw -echo; dd bs=1 count=1 2>/dev/null | cat; stty sane; exit 3", "",
			sandbox.Keys, false},
		{"MayGoOn", `python3 -c 'import select
print("go on? ", end="", flush=True)
select.select([0], [], [], 1000)'; exit 3`, "python3", sandbox.Line, true},
	} {
		parallel(t, c.name, func(t *testing.T) {
			b.need(t, c.needs)
			j := b.start(t, c.command)
			var res *sandbox.Result
			b.eventually(t, func() bool {
				res = j.status()
				return res.State != sandbox.Running
			}, "the job waits")
			waiting(t, res, c.kind)
			require.Equal(t, c.mayGoOn, res.MayGoOn, show(res))
			require.Equal(t, -1, res.ExitCode)
			require.Positive(t, res.Duration)
			waiting(t, j.status(), c.kind) // Status changes nothing
			require.NoError(t, j.input("x\n"))
			j.ends(3)
			exited(t, j.status(), 3)
		})
	}
	parallel(t, "Running", func(t *testing.T) {
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m))
		b.alive(t, m, 1)
		running(t, j.status())
		j.kill()
		exited(t, j.status())
	})
	parallel(t, "Printing", func(t *testing.T) {
		j := b.start(t, "while :; do echo line; sleep 0.01; done")
		j.shown("line\n")
		for range 10 {
			running(t, j.status())
		}
	})
	parallel(t, "Answered", func(t *testing.T) {
		m := b.marker(t)
		j := b.start(t, "read -r x; sleep "+string(m))
		waiting(t, j.until(), sandbox.Line)
		require.NoError(t, j.input("x\n"))
		b.alive(t, m, 1)
		running(t, j.status())
		j.kill()
	})
	parallel(t, "Cancelled", func(t *testing.T) {
		j := b.start(t, "read -r x")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, errorOf(j.Status(ctx)), context.Canceled)
		waiting(t, j.until(), sandbox.Line)
	})
}

// jobUntil waits for jobs to print, to ask and to end.
func jobUntil(t *testing.T, b *box) {
	parallel(t, "Conversation", func(t *testing.T) {
		j := b.start(t, `echo one; printf '1? '; read -r x; echo "got $x"; printf '2? '; `+
			`read -r x; echo "got $x"; exit 3`)
		waitingWith(t, j.until(), "one\n1? ", sandbox.Line)
		waitingWith(t, j.until(), "", sandbox.Line)
		require.NoError(t, j.input("ann\n"))
		waitingWith(t, j.until(), "ann\ngot ann\n2? ", sandbox.Line)
		require.NoError(t, j.input("bob\n"))
		exitedWith(t, j.until(), 3, "bob\ngot bob\n")
		exitedWith(t, j.until(), 3, "")
		same(t, "one\n1? ann\ngot ann\n2? bob\ngot bob\n", j.ends(3).Output)
	})
	parallel(t, "Match", func(t *testing.T) {
		j := b.start(t, "echo starting; until [ -e match ]; do sleep 0.02; done; "+
			"echo 'listening on 80, for now'; read -r x")
		j.shown("starting\n")
		runningWith(t, j.until(sandbox.Yield(50*time.Millisecond)), "starting\n")
		b.script(t, `: > "$1/match"`, b.tmp)
		res := j.until(matching(`listening on \d+`))
		runningWith(t, res, "listening on 80")
		require.Equal(t, "listening on 80", res.Matched)
		waitingWith(t, j.until(), ", for now\n", sandbox.Line)
	})
	// Until searches what was printed before the first call.
	parallel(t, "MatchBefore", func(t *testing.T) {
		j := b.start(t, "seq 1 20000; printf ready; read -r x")
		j.shown("ready")
		res := j.until(matching("\n10000\n"))
		require.True(t, strings.HasSuffix(lines(1, 10000), res.Output[len(res.Output)-1000:]))
		waitingWith(t, j.until(), lines(10001, 20000)+"ready", sandbox.Line)
	})
	parallel(t, "MuchBefore", func(t *testing.T) {
		j := b.start(t, "stty -onlcr; seq 1 400000; printf ready; exit 3")
		j.isDone()
		res := j.until()
		exited(t, res, 3)
		whole := lines(1, 400000) + "ready"
		require.EqualValues(t, len(whole), int64(len(res.Output))+res.Omitted)
		require.True(t, strings.HasPrefix(whole, res.Output[:res.OmittedAt]))
		require.True(t, strings.HasSuffix(whole, res.Output[res.OmittedAt:]))
		exitedWith(t, j.until(), 3, "")
	})
	parallel(t, "AtOnce", func(t *testing.T) {
		j := b.start(t, "until [ -e atonce ]; do echo tick; sleep 0.02; done; echo one; "+
			"echo two; exit 3")
		opts := []sandbox.ExecOption{matching("one"), matching("two"), nil}
		results, tees := make([]*sandbox.Result, 3), make([]strings.Builder, 3)
		var all, listening sync.WaitGroup
		listening.Add(3)
		for i, opt := range opts {
			all.Go(func() {
				var err error
				w := &firstWrite{w: &tees[i], seen: sync.OnceFunc(listening.Done)}
				results[i], err = attempt("Job.Until", j.untilCall(opt, sandbox.Tee(w)))
				assert.NoError(t, err)
			})
		}
		listening.Wait()
		b.script(t, `: > "$1/atonce"`, b.tmp)
		all.Wait()
		for i, end := range []string{"one", "two", "one\ntwo\n"} {
			require.True(t, strings.HasSuffix(results[i].Output, end), show(results[i]))
			require.Contains(t, unix([]byte(tees[i].String())), end)
		}
		exited(t, results[2], 3)
		exited(t, j.until(), 3)
	})
	// The wait ends, and the job goes on.
	parallel(t, "Unfinished", func(t *testing.T) {
		j := b.start(t, "echo a; until [ -e unfinished ]; do sleep 0.02; done; exit 6")
		runningWith(t, j.until(matching("a\n")), "a\n")
		runningWith(t, j.until(sandbox.Idle(50*time.Millisecond)), "")
		runningWith(t, j.until(sandbox.Yield(50*time.Millisecond)), "")
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		res, err := within(b, t, "Job.Until", func(context.Context) (*sandbox.Result, error) {
			return j.Until(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		running(t, res)
		running(t, j.status())
		b.script(t, `: > "$1/unfinished"`, b.tmp)
		exited(t, j.until(), 6)
	})
	for _, c := range []struct {
		name, command string
		opt           sandbox.ExecOption
		err           error
		codes         []int
	}{
		{"Timeout", "sleep {n}", sandbox.Timeout(50 * time.Millisecond), sandbox.ErrTimeout,
			[]int{130}},
		{"TimeoutOfChildren", `trap "" INT; sh -c 'sleep {n} & sleep {n}; :'`,
			sandbox.Timeout(50 * time.Millisecond), sandbox.ErrTimeout, []int{129, 130, 137, 143}},
		{"Fail", "sh -c 'read -r x; :' {n}", sandbox.AtQuestion(sandbox.Fail),
			sandbox.ErrQuestion, []int{130}},
		{"EndInput", "cat; exit 3", sandbox.AtQuestion(sandbox.EndInput), nil, []int{3}},
	} {
		parallel(t, c.name, func(t *testing.T) {
			m := b.marker(t)
			j := b.start(t, strings.ReplaceAll(c.command, "{n}", string(m)))
			res, err := within(b, t, "Job.Until", j.untilCall(c.opt))
			require.ErrorIs(t, err, c.err)
			exited(t, res, c.codes...)
			j.ends(c.codes...)
			b.gone(t, m)
		})
	}
	parallel(t, "NoSuchPolicy", func(t *testing.T) {
		j := b.start(t, "exit 3")
		_, err := within(b, t, "Job.Until", j.untilCall(sandbox.AtQuestion(99)))
		require.ErrorContains(t, err, "there is no policy")
		j.ends(3)
	})
	parallel(t, "WithWait", func(t *testing.T) {
		j := b.start(t, "read -r x; exit 6")
		require.NoError(t, together(3, func(i int) error {
			if i == 0 {
				return errorOf(attempt("Job.Wait", j.Wait))
			}
			res, err := attempt("Job.Until", j.untilCall(sandbox.AtQuestion(sandbox.EndInput)))
			if err == nil && res.ExitCode != 6 {
				err = fmt.Errorf("want exit status 6, got %s", show(res))
			}
			return err
		}))
	})
}
