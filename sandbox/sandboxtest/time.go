package sandboxtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// time: what is told to end ends, all of it, and the shell goes on.
func (s *suite) time(t *testing.T) {
	b := s.box(t)
	t.Run("30_Timeout", func(t *testing.T) { timeouts(t, b) })
	t.Run("30_TimeoutDetails", func(t *testing.T) { timeoutDetails(t, b) })
	t.Run("31_Cancel", func(t *testing.T) { cancels(t, b) })
	t.Run("31_WrongInputs", func(t *testing.T) { wrongInputs(t, b) })
	t.Run("31_TimeoutsInARow", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		n := s.count(100)
		sh.output("X=-1")
		// the last one that has certainly run: on a busy machine the shell may not have read a
		// command when its time is over
		ran := -1
		for i := range n {
			res := sh.timeout(20*time.Millisecond, fmt.Sprintf("echo $((X=%d)); sleep %s", i, m))
			exited(t, res, 130)
			// an interrupted bash ends its line
			if said := strings.TrimSpace(res.Output); said != "" {
				same(t, strconv.Itoa(i), said)
				ran = i
			}
		}
		b.gone(t, m)
		last, err := strconv.Atoi(strings.TrimSpace(sh.output("echo $X")))
		require.NoError(t, err)
		// one may end before its echo
		require.True(t, ran <= last && last < n, "the last of %d commands that has run is %d, "+
			"and $X says %d", n, ran, last)
		sh.lives()
	})
	t.Run("31_TimeoutAtTheEnd", func(t *testing.T) { // on time or not: in step afterwards
		t.Parallel()
		sh := b.open(t)
		for i := range s.few(15, 60) {
			res, err := within(b, t, "Execute", sh.executes("sleep 0.02",
				sandbox.Timeout(time.Duration(15+i%15)*time.Millisecond)))
			require.NotNil(t, res)
			if err != nil {
				require.ErrorIs(t, err, sandbox.ErrTimeout)
				exited(t, res)
			} else {
				exited(t, res, 0)
			}
			sh.lives()
		}
		sh.fails(sandbox.ErrTimeout, "Execute", sh.executes("sleep 1000", sandbox.Timeout(1)))
		sh.lives()
	})
	t.Run("32_Interrupt", func(t *testing.T) { interrupts(t, b) })
	t.Run("33_ExitStatus", func(t *testing.T) { exitStatuses(t, b) })
}

// timeouts kills what does not want to end. Each command's sleeps last {n} seconds, so that they
// are found in /proc.
func timeouts(t *testing.T, b *box) {
	t.Parallel()
	type dying struct {
		name, command string
		codes         []int // none: any
		needs         string
	}
	cases := []dying{
		{"Sleep", "sleep {n}", []int{130}, ""},
		{"Loop", "while :; do :; done", []int{130}, ""},
		{"LoopOfCommands", "while :; do sleep 0.01; done; echo after", []int{130}, ""},
		{"LoopOfPrograms", "while :; do /bin/true; done", []int{130}, ""},
		{"LoopOfLongSleeps", "for i in 1 2 3; do sleep {n}; done; echo after", []int{130}, ""},
		{"List", "sleep {n}; echo after; sleep {n}", []int{130}, ""},
		{"Lines", "sleep {n}\necho after\nsleep {n}", []int{130}, ""},
		{"Function", "f() { while :; do sleep 0.1; done; }; f; echo after", []int{130}, ""},
		{"Subshell", "(sleep {n}; echo after)", []int{130}, ""},
		{"Substitution", "x=$(sleep {n}); echo after", []int{130}, ""},
		{"Pipeline", "sleep {n} | sleep {n} | cat", []int{130}, ""},
		{"Flood", "yes", []int{130}, ""},
		{"FloodOfTheShell", "while :; do echo y; done", []int{130}, ""},
		{"IgnoresINT", `sh -c 'trap "" INT; sleep {n}; :'`, []int{143}, ""},
		{"IgnoresINTAndTERM", `sh -c 'trap "" INT TERM; sleep {n}; :'`, []int{137}, ""},
		{"IgnoringThenOthers", `sh -c 'trap "" INT; sleep {n}; :'; sleep {n}; sleep {n}`, nil, ""},
		{"IgnoringPipeline",
			`sh -c 'trap "" INT TERM; sleep {n}; :' | sh -c 'trap "" INT; sleep {n}; :'`, nil, ""},
		{"StatusOfItsOwn",
			`sh -c 'trap "echo cleaned up; exit 3" INT; echo ready; while :; do sleep 0.05; done'`,
			[]int{3}, ""},
		{"BackgroundChild", `sh -c 'sleep {n} & wait'`, []int{130}, ""},
		{"BackgroundChildren", `sh -c 'for i in 1 2 3; do sh -c "sleep {n}; :" & done; wait'`, nil,
			""},
		{"GroupsOfTheirOwn", `sh -c 'setsid sleep {n} & setsid sh -c "sleep {n}; :" & wait'`, nil,
			"setsid"},
		{"GroupsThatIgnore",
			`sh -c 'trap "" INT TERM; setsid sleep {n} & setsid sh -c "sleep {n}; :" & wait'`, nil,
			"setsid"},
		{"Daemon", `sh -c '(setsid sleep {n} &); sleep {n}; :'`, nil, "setsid"},
		{"DaemonOfTheShell", "(setsid sleep {n} &); sleep {n}", nil, "setsid"},
		{"JobControl", `sh -c 'set -m; sleep {n} & sh -c "sleep {n}; :" & wait'`, nil, ""},
		{"ShellIgnoresINT", "trap '' INT; sleep {n}", []int{143}, ""},
		{"ShellIgnoresINTAndLoops", "trap '' INT; while :; do sleep {n}; done", nil, ""},
		{"ShellIgnoresAllAndLoops", "trap '' INT TERM HUP QUIT; echo ready; while :; do :; done",
			[]int{137}, ""},
		{"RawTerminal", "stty raw -echo; sleep {n}", []int{130, 143}, ""},
		{"OtherInterruptKey", "stty intr ^X; sleep {n}", []int{130, 143}, ""},
		{"Python", "python3 -c 'import time; print(\"ready\", flush=True); time.sleep({n})'",
			[]int{130}, "python3"},
		{"PythonLoop", "python3 -c '\nprint(\"ready\", flush=True)\nwhile True: pass'", []int{130},
			"python3"},
		{"PythonThatSwallows", "python3 -c '\nimport time\nprint(\"ready\", flush=True)\nwhile " +
			"True:\n  try: time.sleep({n})\n  except BaseException: pass'", []int{143}, "python3"},
		{"PythonSubprocess", "python3 -c 'import subprocess; subprocess.run([\"sleep\", " +
			"\"{n}\"], start_new_session=True)'", nil, "python3"},
		{"Exec", "exec sleep {n}", []int{130}, ""},
	}
	// The shell itself ends where it ignores the signals; and bash 5.2, left to itself, dies now
	// and then of a ^C between two forks.
	mayRestart := []string{"Exec", "ShellIgnoresINTAndLoops", "ShellIgnoresAllAndLoops",
		"LoopOfPrograms", "LoopOfCommands"}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			m := b.marker(t)
			command := strings.ReplaceAll(c.command, "{n}", string(m))
			running(t, sh.begins("echo before; "+command))
			if n := strings.Count(command, string(m)); n > 0 {
				b.alive(t, m, 1)
			}
			res := sh.fails(sandbox.ErrTimeout, "Wait", sh.waits(
				sandbox.Timeout(100*time.Millisecond)))
			require.NotNil(t, res, "the Result beside ErrTimeout")
			if b.ashHangs(res, c.name) {
				sh.usable()
				return
			}
			exited(t, res, c.codes...)
			require.NotZero(t, res.ExitCode, "ExitCode")
			require.NotContains(t, res.Output, "after\n")
			b.gone(t, m)
			if c.name == "StatusOfItsOwn" {
				require.Contains(t, res.Output, "cleaned up\n")
			}
			next := sh.exec("trap - INT TERM HUP QUIT")
			// told at once or, if it came to its prompt and died then, with the next Result
			if res.Restarted || next.Restarted {
				require.Containsf(t, mayRestart, c.name, "the shell has been restarted: %s",
					show(res))
				sh.usable()
			} else {
				sh.lives()
			}
		})
	}
	t.Run("Sudo", func(t *testing.T) {
		t.Parallel()
		b.need(t, "sudo")
		if code, _, _ := b.sh(t, "sudo -n true"); code != 0 {
			b.suite.skip(t, "sudo asks for a password here")
		}
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sudo -n sleep "+string(m), sandbox.Yield(400*time.Millisecond)))
		b.alive(t, m, 1)
		res := sh.fails(sandbox.ErrTimeout, "Wait", sh.waits(sandbox.Timeout(100*time.Millisecond)))
		exited(t, res)
		require.NotZero(t, res.ExitCode, "ExitCode")
		b.gone(t, m)
		sh.lives()
	})
}

func timeoutDetails(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Execute", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		begin := time.Now()
		res := sh.timeout(time.Second, "mkdir sub; cd sub; X=1; echo before; sleep "+string(m))
		exited(t, res, 130)
		require.GreaterOrEqual(t, time.Since(begin), time.Second)
		require.GreaterOrEqual(t, res.Duration, time.Second)
		require.True(t, strings.HasPrefix(res.Output, "before\n"), show(res))
		require.Equal(t, sh.dir+"/sub", res.Cwd)
		b.gone(t, m)
		same(t, "1\n", sh.output("echo $X"))
		sh.output("cd ..")
		sh.lives()
	})
	t.Run("NotReached", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("echo a; (exit 3)", sandbox.Timeout(limit))
		exited(t, res, 3)
		same(t, "a\n", res.Output)
		sh.lives()
	})
	t.Run("WaitingIsNoTimeout", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask, sandbox.Timeout(limit)), sandbox.Line)
		exited(t, sh.input("ann\n", sandbox.Timeout(limit)), 0)
		sh.lives()
	})
	t.Run("OfInput", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		waiting(t, sh.exec("read -r x; echo \"got $x\"; sleep "+string(m)), sandbox.Line)
		res := sh.fails(sandbox.ErrTimeout, "Input", sh.inputs("a\n", sandbox.Timeout(time.Second)))
		exited(t, res, 130)
		require.True(t, strings.HasPrefix(res.Output, "a\ngot a\n"), show(res))
		b.gone(t, m)
		sh.lives()
	})
	// which has returned: the command is not killed later
	t.Run("HoldsForOneCall", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		running(t, sh.exec("sleep 1; echo end", sandbox.Yield(100*time.Millisecond),
			sandbox.Timeout(500*time.Millisecond)))
		res := sh.wait()
		exited(t, res, 0)
		same(t, "end\n", res.Output)
		sh.lives()
	})
	t.Run("YieldAfterTimeout", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.timeout(200*time.Millisecond, "sleep 1000", sandbox.Yield(limit)), 130)
		sh.lives()
	})
	t.Run("LeavesBackgroundProcesses", func(t *testing.T) { // which an earlier command started
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		sh.output("sleep " + string(m) + " & pid=$!")
		exited(t, sh.timeout(200*time.Millisecond, "sleep 1000"), 130)
		running(t, sh.begins(`sh -c 'trap "" INT TERM; echo ready; sleep 1000; :'`))
		exited(t, sh.fails(sandbox.ErrTimeout, "Wait",
			sh.waits(sandbox.Timeout(100*time.Millisecond))), 137)
		require.Len(t, b.processes(t, m), 1, "the background process")
		sh.exec("kill $pid; wait")
		b.gone(t, m)
		sh.lives()
	})
	t.Run("OtherSessionsGoOn", func(t *testing.T) {
		t.Parallel()
		one, two := b.open(t), b.open(t)
		m := b.marker(t)
		running(t, two.exec("sleep "+string(m), sandbox.Yield(100*time.Millisecond)))
		running(t, one.begins(`sh -c 'trap "" INT; echo ready; sleep 1000; :'`))
		exited(t, one.fails(sandbox.ErrTimeout, "Wait",
			one.waits(sandbox.Timeout(100*time.Millisecond))), 143)
		require.Len(t, b.processes(t, m), 1, "the other session's program")
		exited(t, two.interrupt(), 130)
		one.lives()
		two.lives()
	})
	t.Run("Message", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		_, err := within(b, t, "Execute", sh.executes("sleep 1000",
			sandbox.Timeout(100*time.Millisecond)))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, sandbox.ErrTimeout)
	})
}

func exitStatuses(t *testing.T, b *box) {
	t.Parallel()
	sh := b.open(t)
	for _, c := range []struct {
		command string
		code    int
	}{
		{"true", 0}, {"false", 1}, {"(exit 2)", 2}, {"(exit 126)", 126}, {"(exit 255)", 255},
		{"sh -c 'exit 255'", 255}, {"sh -c 'exit 130'", 130},
		{": > f; ./f", 126}, {"./", 126}, {"nosuchcommand", 127}, {"./nothing", 127},
		{"sh -c 'kill -HUP $$'", 129}, {"sh -c 'kill -INT $$'", 130},
		{"sh -c 'kill -QUIT $$'", 131}, {"sh -c 'kill -ABRT $$'", 134},
		{"sh -c 'kill -KILL $$'", 137},
		{"sh -c 'kill -USR1 $$'", 138}, {"sh -c 'kill -SEGV $$'", 139},
		{"sh -c 'kill -PIPE $$'", 141}, {"sh -c 'kill -ALRM $$'", 142},
		{"sh -c 'kill -TERM $$'", 143},
		{"false | true", 0}, {"true | false", 1}, {"! true", 1}, {"! false", 0},
		{"yes | head -n 1 >/dev/null", 0},
		{"true && false", 1}, {"false || true", 0}, {"if false; then :; fi", 0}, {"x=$(exit 9)", 9},
		{"return_of() { return 200; }; return_of", 200}, {"false &", 0},
	} {
		t.Run(strings.ReplaceAll(c.command, "/", "|"), func(t *testing.T) {
			if strings.Contains(c.command, "-QUIT") {
				if code, _, _ := b.sh(t, "ulimit -c 0; "+c.command); code == 0 {
					b.suite.skip(t, "the box's sh ignores SIGQUIT, as busybox's does")
				}
			}
			exited(t, sh.with(t).exec("ulimit -c 0; "+c.command), c.code)
		})
	}
	sh.exec("wait")
	sh.lives()
}

// ashHangs reports whether the shell has been lost to a loop of its own: busybox ash jumps out of
// malloc at a ^C, and rarely waits for malloc's lock for ever.
func (b *box) ashHangs(res *sandbox.Result, name string) bool {
	return b.ash && res.Restarted && slices.Contains(
		[]string{"Loop", "FloodOfTheShell", "Function"}, name)
}
