package sandboxtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// background: jobs, and processes that commands leave behind.
func (s *suite) background(t *testing.T) {
	b := s.box(t)
	t.Run("37_Ampersand", func(t *testing.T) { ampersands(t, b) })
	t.Run("34_Logs", func(t *testing.T) { logs(t, b) })
	t.Run("34_Jobs", func(t *testing.T) { jobList(t, b) })
	t.Run("35_Ends", func(t *testing.T) { jobEnds(t, b) })
	t.Run("35_Unread", func(t *testing.T) { unread(t, b) })
	t.Run("35_Input", func(t *testing.T) { jobInput(t, b) })
	t.Run("36_Kill", func(t *testing.T) { kills(t, b) })
	t.Run("36_Signal", func(t *testing.T) { signals(t, b) })
}

func ampersands(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []named{
		{"Server", "sleep {n} &"},
		{"ThenCommand", "sleep {n} & echo done"},
		{"Subshell", "(sleep {n}; echo x) &"},
		{"Nohup", "nohup sleep {n} > log 2>&1 &"},
		{"OfAProgram", "sh -c 'sleep {n} & :'"},
		{"OrphanInASubshell", "(sleep {n} &)"},
		{"Several", "sleep {n} & sleep {n} & sleep {n} &"},
		{"Pipeline", "sleep {n} | cat &"},
	} {
		t.Run(c.name, func(t *testing.T) { // it keeps the terminal open, and delays nothing
			t.Parallel()
			if program, _, _ := strings.Cut(c.command, " "); program == "nohup" {
				b.need(t, program)
			}
			sh := b.open(t)
			m := b.marker(t)
			res := sh.exec(strings.ReplaceAll(c.command, "{n}", string(m)))
			exited(t, res, 0)
			b.alive(t, m, 1)
			require.Contains(t, sh.output("echo next"), "next\n")
			same(t, "next\n", sh.output("echo next"))
			require.NotEmpty(t, b.processes(t, m), "it goes on")
			sh.close() // and ends with its session
			b.eventually(t, func() bool {
				return len(b.processes(t, m)) == 0
			}, "the end of what the session ran: %v", b.processes(t, m))
		})
	}
	t.Run("LateOutput", func(t *testing.T) { // is somebody's, and harms nobody
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("(until [ -e go ]; do sleep 0.02; done; echo late; : > went) &"), 0)
		require.Contains(t, sh.output(": > go; until [ -e went ]; do sleep 0.02; done; echo next"),
			"late\n")
		sh.exec("wait")
		sh.lives()
	})
	t.Run("Chatter", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("while :; do echo chatter; sleep 0.01; done & pid=$!"), 0)
		for i := range 20 {
			res := sh.exec(fmt.Sprintf("echo answer; (exit %d)", i))
			exited(t, res, i)
			require.Contains(t, strings.ReplaceAll(res.Output, "chatter\n", ""), "answer\n")
		}
		sh.exec("kill $pid; wait")
		sh.exec("wait")
		sh.lives()
	})
}

func jobList(t *testing.T, b *box) {
	t.Run("ByID", func(t *testing.T) {
		before := len(b.Jobs())
		var started []*job
		for i := range 5 {
			j := b.start(t, fmt.Sprintf("echo %d", i))
			require.Equal(t, fmt.Sprintf("echo %d", i), j.Command())
			started = append(started, j)
		}
		all := b.Jobs()
		require.Len(t, all, before+5)
		for i, j := range started {
			require.Equal(t, j.ID(), all[before+i].ID(),
				"jobs are listed in the order of their start")
			found, ok := b.Job(j.ID())
			require.True(t, ok)
			require.Equal(t, j.ID(), found.ID())
			j.ends(0)
		}
		require.Len(t, b.Jobs(), before+5, "ended jobs stay")
		_, ok := b.Job("no such job")
		require.False(t, ok)
	})
	t.Run("DirAndEnv", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `echo "$PWD $A"; stty size`, sandbox.Dir("/"), sandbox.Env("A=x y"),
			sandbox.Size(30, 90))
		j.ends(0)
		all, _ := j.logs(0)
		same(t, "/ x y\n30 90\n", unix([]byte(all)))
	})
	t.Run("ApartFromSessions", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("export X=1")
		b.start(t, "cd /; X=2; umask 0").ends(0)
		same(t, "1\n", sh.output("echo $X"))
		sh.lives()
	})
	t.Run("WhileASessionIsBusy", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask), sandbox.Line)
		b.start(t, "exit 4").ends(4)
		exited(t, sh.input("ann\n"), 0)
		sh.lives()
	})
	t.Run("Many", func(t *testing.T) {
		t.Parallel()
		var all []*job
		for i := range 20 {
			all = append(all, b.start(t, fmt.Sprintf("seq %d %d; exit %d", i*100, i*100+99, i)))
		}
		for i, j := range all {
			same(t, lines(i*100, i*100+99), j.ends(i).Output)
		}
	})
	t.Run("Scripts", func(t *testing.T) {
		t.Parallel()
		same(t, "a\n\nb\n", b.start(t, "echo a\n\n# comment\ncat <<'EOF'\n\nb\nEOF").ends(0).Output)
		b.start(t, "(a").ends(2)
		b.start(t, "").ends(0)
		b.start(t, "nosuchcommand").ends(127)
		b.start(t, "sh -c 'kill -9 $$'").ends(137)
		b.start(t, "kill -9 $$").ends(137)
		b.start(t, "exec sh -c 'exit 5'").ends(5)
		b.start(t, "set -e; false; echo no").ends(1)
		same(t, strings.Repeat("x", 70_000)+"\n", b.start(t,
			"echo "+strings.Repeat("x", 70_000)).ends(0).Output)
	})
	t.Run("BoundedLog", func(t *testing.T) { // offsets stay those of the whole
		t.Parallel()
		j := b.start(t, "stty -onlcr; seq 1 20000", sandbox.MaxLog(1200))
		res := j.ends(0)
		whole := int64(len(lines(1, 20000)))
		data, next, err := j.Logs(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, whole, next)
		same(t, lines(1, 20000)[whole-1200:], string(data))
		same(t, lines(20000-198, 20000), res.Output) // without what may be a part of a line
		require.EqualValues(t, whole, res.Omitted+int64(len(res.Output)))
	})
	t.Run("Forget", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "echo a; read x")
		j.shown("a")
		require.ErrorIs(t, j.Forget(), sandbox.ErrBusy)
		j.kill()
		require.NoError(t, j.Forget())
		_, ok := b.Job(j.ID())
		require.False(t, ok)
		_, _, err := j.Logs(t.Context(), 0)
		require.ErrorIs(t, err, sandbox.ErrClosed)
		_, err = j.Wait(t.Context())
		require.ErrorIs(t, err, sandbox.ErrClosed)
		require.NoError(t, j.Forget())
	})
	t.Run("DirThatIsNotThere", func(t *testing.T) {
		t.Parallel()
		_, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
			return b.Background(ctx, "echo a", sandbox.Dir(b.tmp+"/nothing"))
		})
		require.ErrorContains(t, err, b.tmp+"/nothing")
	})
}

func jobEnds(t *testing.T, b *box) {
	t.Parallel()
	t.Run("BeforeAnyoneLooks", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "echo hi; exit 4")
		select {
		case <-j.Done():
		case <-time.After(limit):
			t.Fatal("Done is not closed")
		}
		for range 2 {
			same(t, "hi\n", j.ends(4).Output)
		}
		all, _ := j.logs(0)
		same(t, "hi\n", unix([]byte(all)))
	})
	t.Run("SilentAndQuick", func(t *testing.T) {
		t.Parallel()
		for range 20 {
			same(t, "", b.start(t, ":").ends(0).Output)
		}
	})
	t.Run("WithAProcessThatKeepsTheTerminal", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m)+" & echo x; exit 2")
		require.Contains(t, j.ends(2).Output, "x\n")
		j.kill()
	})
	t.Run("WaitFromTwoGoroutines", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "sleep 0.3; exit 6")
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				res, err := attempt("Job.Wait", j.Wait)
				if err == nil && res.ExitCode != 6 {
					err = fmt.Errorf("ExitCode %d, want 6", res.ExitCode)
				}
				errs <- err
			}()
		}
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
	})
	t.Run("WaitCancelled", func(t *testing.T) { // ends the waiting, not the job
		t.Parallel()
		j := b.start(t, "until [ -e cancelled ]; do sleep 0.02; done; exit 6")
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := within(b, t, "Job.Wait", func(context.Context) (*sandbox.Result, error) {
			return j.Wait(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		b.script(t, `: > "$1/cancelled"`, b.tmp)
		j.ends(6)
	})
}
