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

// time ends commands by Timeout, context and Interrupt. All their processes end, and the shell goes
// on.
func (s *suite) time(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"30_Timeout", timeouts},
		{"30_TimeoutDetails", timeoutDetails},
		{"31_Cancel", cancels},
		{"31_WrongInputs", wrongInputs},
		{"32_Interrupt", interrupts},
		{"33_Daemons", daemons},
	})
	b.test(t, "31_TimeoutsInARow", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		n := s.count(100)
		sh.output("X=-1")
		ran := -1 // the last that has printed: a busy shell may not run a command in its time
		for i := range n {
			res := sh.timeout(20*time.Millisecond, fmt.Sprintf("echo $((X=%d)); sleep %s", i, m))
			exited(t, res, 130)
			// bash prints a newline when it is interrupted
			if said := strings.TrimSpace(res.Output); said != "" {
				same(t, strconv.Itoa(i), said)
				ran = i
			}
		}
		b.gone(t, m)
		last, err := strconv.Atoi(strings.TrimSpace(sh.output("echo $X")))
		require.NoError(t, err)
		// a command may be ended between its assignment and its echo
		require.Truef(t, ran <= last && last < n, "of %d commands, the last that has printed is "+
			"%d, and $X is %d", n, ran, last)
	})
	// The command ends at about its Timeout.
	b.test(t, "31_TimeoutAtTheEnd", func(t *testing.T, sh *shell) {
		for i := range s.pick(15, 60) {
			res, err := within(b, t, "Execute", sh.executeCall("sleep 0.02",
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
		sh.fails(sandbox.ErrTimeout, "Execute", sh.executeCall("sleep 1000", sandbox.Timeout(1)))
	})
	b.test(t, "33_ExitStatus", exitStatuses)
}

// A timedOut is a command that its Timeout ends. {n} is a marker.
type timedOut struct {
	name, command string
	codes         []int // nil: any but 0
	needs         string
}

var timedOutCommands = []timedOut{
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
	// as in daemons, not sooner after the command before than a clock of 10 ms tells
	{"DaemonOfTheShell", "sleep 0.1; (setsid sleep {n} &); sleep {n}", nil, "setsid"},
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

// timeouts lets commands time out. All their processes end, also if they ignore signals.
func timeouts(t *testing.T, b *box) {
	// the shell ends if it ignores the signals itself; bash 5.2 sometimes dies of a ^C between two
	// forks
	mayRestart := []string{"Exec", "ShellIgnoresINTAndLoops", "ShellIgnoresAllAndLoops",
		"LoopOfPrograms", "LoopOfCommands"}
	for _, c := range timedOutCommands {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			if b.suite.plain && c.name == "DaemonOfTheShell" {
				b.suite.skip(t, "PlainSSHD: "+plainClock)
			}
			m := b.marker(t)
			command := strings.ReplaceAll(c.command, "{n}", string(m))
			running(t, sh.begins("echo before; "+command))
			if n := strings.Count(command, string(m)); n > 0 {
				b.alive(t, m, 1)
			}
			res := sh.waitTimeout()
			if b.ashHangs(res, c.name) {
				sh.mayRestart = true
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
			// a shell that died at its prompt is reported with the next Result
			if res.Restarted || next.Restarted {
				require.Containsf(t, mayRestart, c.name, "the shell has been restarted: %s",
					show(res))
				sh.mayRestart = true
			}
		})
	}
	b.test(t, "Sudo", func(t *testing.T, sh *shell) {
		b.need(t, "sudo")
		b.needScript(t, "sudo asks for a password here", "sudo -n true")
		m := b.marker(t)
		running(t, sh.exec("sudo -n sleep "+string(m), sandbox.Yield(400*time.Millisecond)))
		b.alive(t, m, 1)
		res := sh.waitTimeout()
		exited(t, res)
		require.NotZero(t, res.ExitCode, "ExitCode")
		b.gone(t, m)
	})
}

func timeoutDetails(t *testing.T, b *box) {
	b.test(t, "Execute", func(t *testing.T, sh *shell) {
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
	})
	b.test(t, "NotReached", func(t *testing.T, sh *shell) {
		exitedWith(t, sh.exec("echo a; (exit 3)", sandbox.Timeout(limit)), 3, "a\n")
	})
	b.test(t, "WaitingIsNoTimeout", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask, sandbox.Timeout(limit)), sandbox.Line)
		exited(t, sh.input("ann\n", sandbox.Timeout(limit)), 0)
	})
	b.test(t, "OfInput", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		waiting(t, sh.exec("read -r x; echo \"got $x\"; sleep "+string(m)), sandbox.Line)
		res := sh.fails(sandbox.ErrTimeout, "Input",
			sh.inputCall("a\n", sandbox.Timeout(time.Second)))
		exited(t, res, 130)
		require.True(t, strings.HasPrefix(res.Output, "a\ngot a\n"), show(res))
		b.gone(t, m)
	})
	// The command outlives the call that had a Timeout.
	b.test(t, "HoldsForOneCall", func(t *testing.T, sh *shell) {
		running(t, sh.exec("sleep 1; echo end", sandbox.Yield(100*time.Millisecond),
			sandbox.Timeout(500*time.Millisecond)))
		exitedWith(t, sh.wait(), 0, "end\n")
	})
	b.test(t, "YieldAfterTimeout", func(t *testing.T, sh *shell) {
		exited(t, sh.timeout(200*time.Millisecond, "sleep 1000", sandbox.Yield(limit)), 130)
	})
	// An earlier command has started these processes.
	b.test(t, "LeavesBackgroundProcesses", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		sh.output("sleep " + string(m) + " & pid=$!")
		exited(t, sh.timeout(200*time.Millisecond, "sleep 1000"), 130)
		running(t, sh.begins(`sh -c 'trap "" INT TERM; echo ready; sleep 1000; :'`))
		exited(t, sh.waitTimeout(), 137)
		require.Len(t, b.processes(t, m), 1, "the background process")
		sh.exec("kill $pid; wait")
		b.gone(t, m)
	})
	parallel(t, "OtherSessionsGoOn", func(t *testing.T) {
		one, two := b.open(t), b.open(t)
		m := b.marker(t)
		running(t, two.exec("sleep "+string(m), sandbox.Yield(100*time.Millisecond)))
		running(t, one.begins(`sh -c 'trap "" INT; echo ready; sleep 1000; :'`))
		exited(t, one.waitTimeout(), 143)
		require.Len(t, b.processes(t, m), 1, "the other session's program")
		exited(t, two.interrupt(), 130)
		one.lives()
		two.lives()
	})
	b.test(t, "Message", func(t *testing.T, sh *shell) {
		_, err := within(b, t, "Execute", sh.executeCall("sleep 1000",
			sandbox.Timeout(100*time.Millisecond)))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, sandbox.ErrTimeout)
	})
}

// exitStatuses checks ExitCode.
func exitStatuses(t *testing.T, sh *shell) {
	b := sh.b
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
}

// ashHangs reports whether busybox ash has hung, and has been replaced. It leaves malloc by longjmp
// at a ^C, after which it rarely waits for malloc's lock for ever.
func (b *box) ashHangs(res *sandbox.Result, name string) bool {
	return b.ash && res.Restarted && slices.Contains(
		[]string{"Loop", "FloodOfTheShell", "Function"}, name)
}
