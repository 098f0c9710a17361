package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
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

// A job is a background job under test.
type job struct {
	sandbox.Job
	b *box
	t testing.TB
}

// start is Background, in b's directory for cases.
func (b *box) start(t testing.TB, command string, opts ...sandbox.SessionOption) *job {
	t.Helper()
	j, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
		return b.Background(ctx, command, append([]sandbox.SessionOption{sandbox.Dir(b.tmp)}, opts...)...)
	})
	require.NoError(t, err, "Background(%s)", brief(command))
	t.Cleanup(func() { attempt("Kill", empty(j.Kill)) })
	return &job{j, b, t}
}

// logs is Logs from offset on.
func (j *job) logs(offset int64) (string, int64) {
	j.t.Helper()
	var next int64
	data, err := within(j.b, j.t, "Logs", func(ctx context.Context) (data []byte, err error) {
		data, next, err = j.Logs(ctx, offset)
		return data, err
	})
	require.NoErrorf(j.t, err, "Logs(%d)", offset)
	require.Equalf(j.t, offset+int64(len(data)), next, "next of Logs(%d), which returned %d bytes", offset, len(data))
	return string(data), next
}

// shown waits until the logs hold text, and returns them.
func (j *job) shown(text string) (all string) {
	j.t.Helper()
	j.b.eventually(j.t, func() bool { all, _ = j.logs(0); return strings.Contains(all, text) }, "%q in the logs of %s", text, j.Command())
	return all
}

// ends waits for the job's end with a code.
func (j *job) ends(codes ...int) *sandbox.Result {
	j.t.Helper()
	res, err := within(j.b, j.t, "Job.Wait", j.Wait)
	require.NoError(j.t, err, "Wait")
	require.Equalf(j.t, sandbox.Exited, res.State, "%s", show(res))
	require.Containsf(j.t, codes, res.ExitCode, "%s", show(res))
	select {
	case <-j.Done():
	default:
		j.t.Fatal("Wait has returned, and Done is not closed")
	}
	return res
}

// kill is Kill.
func (j *job) kill() {
	j.t.Helper()
	_, err := within(j.b, j.t, "Kill", empty(func(ctx context.Context) error { return j.Kill(ctx) }))
	require.NoError(j.t, err, "Kill")
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
			require.Less(t, res.Duration, grace/2)
			b.alive(t, m, 1)
			require.Contains(t, sh.output("echo next"), "next\n")
			same(t, "next\n", sh.output("echo next"))
			require.NotEmpty(t, b.processes(t, m), "it goes on")
			sh.close() // and ends with its session
			b.eventually(t, func() bool { return len(b.processes(t, m)) == 0 }, "the end of what the session ran: %v", b.processes(t, m))
		})
	}
	t.Run("LateOutput", func(t *testing.T) { // is somebody's, and harms nobody
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("(until [ -e go ]; do sleep 0.02; done; echo late; : > went) &"), 0)
		require.Contains(t, sh.output(": > go; until [ -e went ]; do sleep 0.02; done; echo next"), "late\n")
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

func logs(t *testing.T, b *box) {
	t.Parallel()
	t.Run("WhileItWritesAndAfter", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo line $i; [ $((i % 30)) = 0 ] && sleep 0.05; done; exit 3")
		want := repeat("line %d\n", 300)
		read := func() string { // on and on, as it grows
			var all strings.Builder
			var offset int64
			for ended := false; ; {
				data, next, err := j.Logs(context.Background(), offset)
				if err != nil {
					return err.Error()
				}
				all.Write(data)
				if len(data) == 0 && ended {
					return all.String()
				}
				offset = next
				select {
				case <-j.Done():
					ended = true
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
		var wg sync.WaitGroup
		got := make([]string, 3)
		for i := range got { // each at an offset of its own
			wg.Add(1)
			go func() {
				defer wg.Done()
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				got[i] = read()
			}()
		}
		wg.Wait()
		for _, g := range got {
			same(t, want, g)
		}
		same(t, want, j.ends(3).Output)
		for range 2 { // again, after its end
			all, next := j.logs(0)
			same(t, want, all)
			data, _ := j.logs(next)
			require.Empty(t, data)
			data, _ = j.logs(next - 9)
			same(t, "line 300\n", data)
			data, _ = j.logs(7)
			same(t, want[7:], data)
		}
	})
	t.Run("NothingNewDoesNotWait", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		j := b.start(t, "echo ready; sleep "+string(m))
		_, next := int64(0), int64(len(j.shown("ready\n")))
		begin := time.Now()
		data, _ := j.logs(next)
		require.Empty(t, data)
		require.Less(t, time.Since(begin), grace/4)
		j.kill()
		b.gone(t, m)
	})
	t.Run("BeyondTheEnd", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "echo a")
		j.ends(0)
		for _, offset := range []int64{3, 1 << 40, -1} {
			_, err := within(b, t, "Logs", func(ctx context.Context) ([]byte, error) {
				data, _, err := j.Logs(ctx, offset)
				return data, err
			})
			require.Errorf(t, err, "Logs(%d) of 2 bytes", offset)
		}
	})
	t.Run("Raw", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `printf '\033[31mred\033[0m\r50%%\r100%%\n\377\376\n'; printf 'no end'`)
		res := j.ends(0)
		all, _ := j.logs(0)
		same(t, "\x1b[31mred\x1b[0m\r50%\r100%\n\xff\xfe\nno end", all)
		same(t, "100%\n\xff\xfe\nno end", res.Output)
	})
	t.Run("AtMostAMebibyte", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `head -c 3000000 /dev/zero | tr '\0' x`)
		j.ends(0)
		data, _ := j.logs(0)
		require.LessOrEqual(t, len(data), 1<<20)
		require.NotEmpty(t, data)
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
			require.Equal(t, j.ID(), all[before+i].ID(), "jobs are listed in the order of their start")
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
		j := b.start(t, `echo "$PWD $A"; stty size`, sandbox.Dir("/"), sandbox.Env("A=x y"), sandbox.Size(30, 90))
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
		same(t, strings.Repeat("x", 70_000)+"\n", b.start(t, "echo "+strings.Repeat("x", 70_000)).ends(0).Output)
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
		begin := time.Now()
		j := b.start(t, "sleep "+string(m)+" & echo x; exit 2")
		require.Contains(t, j.ends(2).Output, "x\n")
		require.Less(t, time.Since(begin), grace/2)
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
		_, err := within(b, t, "Job.Wait", func(context.Context) (*sandbox.Result, error) { return j.Wait(ctx) })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		b.script(t, `: > "$1/cancelled"`, b.tmp)
		j.ends(6)
	})
}

// unread: a job may print for hours before anyone looks; it neither stops nor is it kept in memory.
func unread(t *testing.T, b *box) {
	t.Parallel()
	n := b.suite.count(100_000_000)
	j := b.start(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo end`, n))
	res := j.ends(0)
	require.True(t, strings.HasSuffix(res.Output, "xend\n"), show(res))
	require.EqualValues(t, n+4, int64(len(res.Output))+res.Omitted, "bytes kept and omitted")
	var offset, size int64
	for {
		data, next := j.logs(offset)
		if len(data) == 0 {
			break
		}
		size += int64(len(data))
		if rest := strings.TrimLeft(data, "x"); rest != "" {
			require.Equal(t, "end\n", rest, "at offset %d", offset)
		}
		offset = next
	}
	require.EqualValues(t, n+4, size, "bytes of the logs")
}

func jobInput(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Answered", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `printf 'name? '; read -r x; echo "got $x"; exit 3`)
		j.shown("name? ")
		_, err := within(b, t, "Job.Input", empty(func(ctx context.Context) error { return j.Input(ctx, "ann\n") }))
		require.NoError(t, err)
		same(t, "name? ann\ngot ann\n", j.ends(3).Output)
		_, err = within(b, t, "Job.Input", empty(func(ctx context.Context) error { return j.Input(ctx, "x\n") }))
		require.ErrorIs(t, err, sandbox.ErrIdle)
	})
	t.Run("OnATerminal", func(t *testing.T) {
		t.Parallel()
		b.start(t, "[ -t 0 ] && [ -t 1 ] && [ -t 2 ]").ends(0)
	})
	t.Run("Keys", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "echo ready; exec cat")
		j.shown("ready\n")
		for _, text := range []string{"one\n", "two\n", "\x04"} {
			_, err := within(b, t, "Job.Input", empty(func(ctx context.Context) error { return j.Input(ctx, text) }))
			require.NoError(t, err)
		}
		out := j.ends(0).Output
		require.Equal(t, 2, strings.Count(out, "one\n"), "echo and answer: %s", brief(out))
		require.Equal(t, 2, strings.Count(out, "two\n"), "echo and answer: %s", brief(out))
	})
}

func kills(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs string }{
		{"Simple", "sleep {n}", ""},
		{"Children", "sh -c 'sleep {n} & sleep {n} & wait'", ""},
		{"Background", "sleep {n} & sleep {n} & wait", ""},
		{"Ignoring", `trap "" INT TERM HUP; sh -c 'sleep {n}; :'; sleep {n}`, ""},
		{"GroupsOfTheirOwn", `sh -c 'setsid sleep {n} & setsid sh -c "sleep {n}; :" & wait'`, "setsid"},
		{"Forks", `sh -c 'while :; do sh -c "sleep {n}; :" & sleep 0.05; done'`, ""},
		{"Stopped", `sh -c 'sleep {n} & kill -STOP $!; wait'`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			m := b.marker(t)
			j := b.start(t, strings.ReplaceAll(c.command, "{n}", string(m)))
			b.alive(t, m, min(2, strings.Count(c.command, "{n}")))
			j.kill()
			b.gone(t, m)
			j.ends(129, 137, 143)
			j.kill() // again: nothing
		})
	}
	t.Run("Ended", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "exit 3")
		j.ends(3)
		j.kill()
		j.ends(3)
	})
	t.Run("FromTwoGoroutines", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m))
		b.alive(t, m, 1)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := attempt("Kill", empty(func(ctx context.Context) error { return j.Kill(ctx) }))
				errs <- err
			}()
		}
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		b.gone(t, m)
	})
	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		j := b.start(t, "sleep "+string(m))
		j.kill()
		b.gone(t, m)
	})
	t.Run("LeavesOthers", func(t *testing.T) {
		t.Parallel()
		m, other := b.marker(t), b.marker(t)
		j, k := b.start(t, "sleep "+string(m)), b.start(t, "sleep "+string(other))
		sh := b.open(t)
		b.alive(t, m, 1)
		b.alive(t, other, 1)
		j.kill()
		b.gone(t, m)
		require.NotEmpty(t, b.processes(t, other))
		k.kill()
		b.gone(t, other)
		sh.lives()
	})
}

func signals(t *testing.T, b *box) {
	t.Parallel()
	signal := func(t *testing.T, j *job, sig syscall.Signal) error {
		t.Helper()
		_, err := within(b, t, "Signal", empty(func(ctx context.Context) error { return j.Signal(ctx, sig) }))
		return err
	}
	for _, c := range []struct {
		name string
		sig  syscall.Signal
		code int
	}{{"INT", syscall.SIGINT, 130}, {"TERM", syscall.SIGTERM, 143}, {"KILL", syscall.SIGKILL, 137}, {"HUP", syscall.SIGHUP, 129}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := b.marker(t)
			j := b.start(t, "sh -c 'sleep "+string(m)+"; :'")
			b.alive(t, m, 2)
			require.NoError(t, signal(t, j, c.sig))
			j.ends(c.code)
			b.gone(t, m)
			for range 3 { // never another process's death
				require.ErrorIs(t, signal(t, j, c.sig), os.ErrProcessDone)
			}
		})
	}
	t.Run("Caught", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `sh -c 'trap "echo caught; exit 9" HUP; echo ready; while :; do sleep 0.05; done'`)
		j.shown("ready\n")
		require.NoError(t, signal(t, j, syscall.SIGHUP))
		require.Contains(t, j.ends(9).Output, "caught\n")
	})
}
