package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// background has jobs, and processes that commands leave behind.
func (s *suite) background(t *testing.T) {
	b := s.box(t)
	t.Run("34_Jobs", func(t *testing.T) { jobList(t, b) })
	b.sections(t, []section{
		{"37_Ampersand", ampersands},
		{"34_Logs", logs},
		{"35_Ends", jobEnds},
		{"35_Unread", unread},
		{"35_Input", jobInput},
		{"35_Pipes", jobPipes},
		{"35_Resize", jobResize},
		{"35_Status", jobStatus},
		{"35_Until", jobUntil},
		{"36_Kill", kills},
		{"36_Signal", signals},
	})
}

// ampersands has commands that leave processes behind. These keep the terminal open, delay no
// command, and end with the session.
func ampersands(t *testing.T, b *box) {
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
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			if c.name == "Nohup" {
				b.need(t, "nohup")
			}
			m := b.marker(t)
			exited(t, sh.exec(strings.ReplaceAll(c.command, "{n}", string(m))), 0)
			b.alive(t, m, 1)
			require.Contains(t, sh.output("echo next"), "next\n")
			same(t, "next\n", sh.output("echo next"))
			require.NotEmpty(t, b.processes(t, m), "the process has ended with its command")
			sh.close()
			b.ended(t, m, "the session's processes, after Close")
		})
	}
	// The output is in the Output of the command that runs then.
	b.test(t, "LateOutput", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("(until [ -e go ]; do sleep 0.02; done; echo late; : > went) &"), 0)
		require.Contains(t, sh.output(": > go; until [ -e went ]; do sleep 0.02; done; echo next"),
			"late\n")
		sh.exec("wait")
	})
	b.test(t, "Chatter", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("while :; do echo chatter; sleep 0.01; done & pid=$!"), 0)
		for i := range 20 {
			res := sh.exec(fmt.Sprintf("echo answer; (exit %d)", i))
			exited(t, res, i)
			require.Contains(t, strings.ReplaceAll(res.Output, "chatter\n", ""), "answer\n")
		}
		sh.exec("kill $pid; wait")
		sh.exec("wait")
	})
}

// jobList starts and lists jobs. ByID counts them, before the other cases run.
func jobList(t *testing.T, b *box) {
	jobContents(t, b)
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
	parallel(t, "Forget", func(t *testing.T) {
		j := b.start(t, "echo a; read x")
		j.shown("a")
		require.ErrorIs(t, j.Forget(), sandbox.ErrBusy)
		j.kill()
		require.NoError(t, j.Forget())
		_, ok := b.Job(j.ID())
		require.False(t, ok)
		_, _, err := j.Logs(t.Context(), 0)
		require.ErrorIs(t, err, sandbox.ErrClosed)
		require.ErrorIs(t, errorOf(j.Wait(t.Context())), sandbox.ErrClosed)
		require.ErrorIs(t, errorOf(j.Until(t.Context())), sandbox.ErrClosed)
		require.ErrorIs(t, errorOf(j.Status(t.Context())), sandbox.ErrClosed)
		require.NoError(t, j.Forget())
	})
	parallel(t, "DirThatIsNotThere", func(t *testing.T) {
		_, err := b.tryBackground(t, "echo a", sandbox.Dir(b.tmp+"/nothing"))
		require.ErrorContains(t, err, b.tmp+"/nothing")
	})
}

// jobContents has jobs with their output and status.
func jobContents(t *testing.T, b *box) {
	parallel(t, "DirAndEnv", func(t *testing.T) {
		j := b.start(t, `echo "$PWD $A"; stty size`, sandbox.Dir("/"), sandbox.Env("A=x y"),
			sandbox.Size(30, 90))
		j.ends(0)
		all, _ := j.logs(0)
		same(t, "/ x y\n30 90\n", unix([]byte(all)))
	})
	b.test(t, "ApartFromSessions", func(t *testing.T, sh *shell) {
		sh.output("export X=1")
		b.start(t, "cd /; X=2; umask 0").ends(0)
		same(t, "1\n", sh.output("echo $X"))
	})
	b.test(t, "WhileASessionIsBusy", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask), sandbox.Line)
		b.start(t, "exit 4").ends(4)
		exited(t, sh.input("ann\n"), 0)
	})
	parallel(t, "Many", func(t *testing.T) {
		var all []*job
		for i := range 20 {
			all = append(all, b.start(t, fmt.Sprintf("seq %d %d; exit %d", i*100, i*100+99, i)))
		}
		for i, j := range all {
			same(t, lines(i*100, i*100+99), j.ends(i).Output)
		}
	})
	parallel(t, "Scripts", func(t *testing.T) {
		same(t, "a\n\nb\n", b.start(t, "echo a\n\n# comment\ncat <<'EOF'\n\nb\nEOF").ends(0).Output)
		for command, code := range map[string]int{"(a": 2, "": 0, "nosuchcommand": 127,
			"sh -c 'kill -9 $$'": 137, "kill -9 $$": 137, "exec sh -c 'exit 5'": 5,
			"set -e; false; echo no": 1} {
			b.start(t, command).ends(code)
		}
		same(t, strings.Repeat("x", 70_000)+"\n", b.start(t,
			"echo "+strings.Repeat("x", 70_000)).ends(0).Output)
	})
	// Offsets count from the job's first byte.
	parallel(t, "BoundedLog", func(t *testing.T) {
		j := b.start(t, "stty -onlcr; seq 1 20000", sandbox.MaxLog(1200))
		res := j.ends(0)
		whole := int64(len(lines(1, 20000)))
		data, next, err := j.Logs(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, whole, next)
		same(t, lines(1, 20000)[whole-1200:], string(data))
		same(t, lines(20000-198, 20000), res.Output) // Output begins with a whole line
		require.EqualValues(t, whole, res.Omitted+int64(len(res.Output)))
	})
}

// jobEnds waits for jobs.
func jobEnds(t *testing.T, b *box) {
	parallel(t, "BeforeAnyoneLooks", func(t *testing.T) {
		j := b.start(t, "echo hi; exit 4")
		j.isDone()
		for range 2 {
			same(t, "hi\n", j.ends(4).Output)
		}
		all, _ := j.logs(0)
		same(t, "hi\n", unix([]byte(all)))
	})
	parallel(t, "SilentAndQuick", func(t *testing.T) {
		for range 20 {
			same(t, "", b.start(t, ":").ends(0).Output)
		}
	})
	parallel(t, "WithAProcessThatKeepsTheTerminal", func(t *testing.T) {
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m)+" & echo x; exit 2")
		require.Contains(t, j.ends(2).Output, "x\n")
		j.kill()
	})
	parallel(t, "WaitFromTwoGoroutines", func(t *testing.T) {
		j := b.start(t, "sleep 0.3; exit 6")
		require.NoError(t, together(2, func(int) error {
			res, err := attempt("Job.Wait", j.Wait)
			if err == nil && res.ExitCode != 6 {
				err = fmt.Errorf("ExitCode %d, want 6", res.ExitCode)
			}
			return err
		}))
	})
	// The wait ends, and the job goes on.
	parallel(t, "WaitCancelled", func(t *testing.T) {
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

// jobResize changes the size of a job's terminal.
func jobResize(t *testing.T, b *box) {
	j := b.start(t, `echo up; until [ "$(stty size)" = "50 132" ]; do sleep 0.02; done; echo new`,
		sandbox.Size(24, 80))
	j.shown("up\n")
	resize := func(rows, cols int) error {
		return errorOf(within(b, t, "Resize", noResult(func(ctx context.Context) error {
			return j.Resize(ctx, rows, cols)
		})))
	}
	require.Error(t, resize(0, 10))
	require.NoError(t, resize(50, 132))
	same(t, "up\nnew\n", j.ends(0).Output)
	require.ErrorIs(t, resize(24, 80), os.ErrProcessDone)
}
