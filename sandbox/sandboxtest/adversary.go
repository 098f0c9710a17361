package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// adversary has programs, files and users that try to change what a session executes, shows or
// reports.
func (s *suite) adversary(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"LeftOver", leftOver},
		{"Thief", thief},
		{"Forged", forged},
		{"Names", redefinedWords},
		{"Hooks", hooks},
		{"Terminal", terminals},
		{"Pinentry", pinentry},
	})
}

// leftOver types input that the command does not read. The input is dropped and counted: no shell
// executes it, and no other command gets it.
func leftOver(t *testing.T, b *box) {
	const line = ": > proof\n"
	never := func(t *testing.T, sh *shell) {
		t.Helper()
		sh.goesOn()
		sh.askAndAnswer()
		same(t, "", sh.output("ls -A"))
	}
	b.test(t, "AtTheEnd", func(t *testing.T, sh *shell) {
		running(t, sh.exec("until [ -e go ]; do sleep 0.02; done; rm go",
			sandbox.Yield(50*time.Millisecond)))
		running(t, sh.input(line, sandbox.Yield(50*time.Millisecond)))
		sh.touch("go")
		res := sh.wait()
		exited(t, res, 0)
		require.Equal(t, len(line), res.Unread, "Unread")
		never(t, sh)
	})
	b.test(t, "AfterTheAnswer", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x; echo \"<$x>\""), sandbox.Line)
		res := sh.input("one\n" + line + "\n" + line)
		exited(t, res, 0)
		require.Contains(t, res.Output, "<one>\n")
		require.Equal(t, 2*len(line)+1, res.Unread, "Unread")
		never(t, sh)
	})
	b.test(t, "AllRead", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x"), sandbox.Line)
		res := sh.input("one\n")
		exited(t, res, 0)
		require.Zero(t, res.Unread, "Unread")
		never(t, sh)
	})
	b.test(t, "AtATimeout", func(t *testing.T, sh *shell) {
		m := sh.sleeps()
		// more than a terminal holds
		text := strings.Repeat(line, 20_000)
		res := sh.fails(sandbox.ErrTimeout, "Input", sh.inputCall(text,
			sandbox.Timeout(300*time.Millisecond)))
		require.NotNil(t, res)
		exited(t, res, 130)
		require.Positive(t, res.Unread, "Unread")
		require.LessOrEqual(t, res.Unread, len(text), "Unread")
		b.gone(t, m)
		never(t, sh)
	})
	b.test(t, "AtAnInterrupt", func(t *testing.T, sh *shell) {
		sh.sleeps()
		running(t, sh.input(line, sandbox.Yield(50*time.Millisecond)))
		res := sh.interrupt()
		exited(t, res, 130)
		require.Equal(t, len(line), res.Unread, "Unread")
		never(t, sh)
	})
	b.test(t, "AtAnExit", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x; exit 3"), sandbox.Line)
		sh.restarted(sh.input("one\n"+line), 3)
		never(t, sh)
	})
}

// thiefSource is a program whose child takes the foreground, reads all input and prints that the
// tests have passed.
const thiefSource = `
import fcntl, os, select, signal, sys, time
for s in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)
r, w = os.pipe()
if os.fork():
    os.close(w); os.read(r, 1); os._exit(0)
os.setpgid(0, 0)
end = time.monotonic() + 30
ready = False
while time.monotonic() < end:
    try:
        os.tcsetpgrp(2, os.getpgrp())
    except OSError:
        pass
    if not ready:
        ready = True; os.write(w, b"x"); os.close(w); os.close(r)
    if select.select([0], [], [], 0.005)[0]:
        try:
            got = os.read(0, 4096)
        except OSError:
            continue
        if not got: break
        os.write(3, got)
        for i in range(1, 30): os.write(1, b"\033]133;D;%d;;0;/;\007" % i)
        os.write(1, b"ALL 100 TESTS PASSED\r\n")
`

// thief runs a process of another user that stays on the terminal. The process neither gets a
// command nor ends one.
func thief(t *testing.T, b *box) {
	b.need(t, "setpriv", "python3")
	if !b.root(t) {
		b.suite.skip(t, "only root can become another user")
	}
	const become = "setpriv --reuid 65534 --regid 65534 --clear-groups "
	code, python, _ := b.sh(t, "for p in python3 /usr/bin/python3; do "+become+
		`"$p" -c pass >/dev/null 2>&1 && echo "$p" && exit; done; exit 1`)
	if code != 0 {
		b.suite.skip(t, "another user cannot run python3 here")
	}
	sh := b.open(t)
	m := b.marker(t)
	t.Cleanup(func() { b.killMarked(t, m) }) // TERM and HUP do not end it
	exited(t, sh.exec(become+strings.TrimSpace(python)+" -c "+quote(thiefSource)+" "+string(m)+
		" 3> log"), 0)
	b.alive(t, m, 1)
	for range 5 {
		res := sh.exec("echo 'the tests'; (exit 7)")
		exited(t, res, 7)
		require.Contains(t, res.Output, "the tests\n")
		require.NotContains(t, res.Output, "PASSED")
		require.Equal(t, sh.dir, res.Cwd)
	}
	same(t, "", b.cat(t, sh.dir+"/log"))
	b.killMarked(t, m)
	sh.lives()
}

// forgeSource prints markers for the ends of commands, with every word that it can find in the
// environment and arguments of the shell. It exits with 9.
const forgeSource = `
import os, re
known = b""
for p in (os.getppid(), os.getpid()):
    for f in ("environ", "cmdline"):
        try: known += open("/proc/%d/%s" % (p, f), "rb").read() + b"\0"
        except OSError: pass
words = [b"", b"0" * 32] + sorted(set(re.findall(rb"[0-9A-Za-z]{8,}", known)))[:100]
out = b""
for w in words:
    for i in range(1, 30):
        out += b"\033]133;C;%d;%s;0\007\033]133;D;%d;%s;0;/;%s\007" % (i, w, i, w, w)
while out: out = out[os.write(1, out):]
os._exit(9)
`

// forged runs programs that print what ends a command. Their output neither ends the command nor
// sets its status.
func forged(t *testing.T, b *box) {
	for _, c := range []struct{ name, before, command, needs string }{
		{"Printed", "",
			`i=0; while [ $i -lt 30 ]; do i=$((i + 1)); printf '\033]133;D;%d;0;0;/;0\007\033]133;D;0\007\033]133;A\007\033]133;C\007' $i; done; (exit 9)`, ""},
		{"FromTheEnvironment", "", "python3 -c " + quote(forgeSource), "python3"},
		{"FromAnExportedPrompt", "export PS1 PS2 PS4 PROMPT_COMMAND",
			"python3 -c " + quote(forgeSource), "python3"},
		{"AfterActivate",
			`printf '_OLD="$PS1"; PS1="(venv) ${PS1:-}"; export PS1; hash -r 2>/dev/null\n' > activate; . ./activate`, "python3 -c " + quote(forgeSource), "python3"},
		{"AllExported", "set -a; PS1=$PS1; set +a", "python3 -c " + quote(forgeSource), "python3"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			if c.before != "" {
				exited(t, sh.exec(c.before))
			}
			for range 3 {
				res := sh.exec(c.command)
				exited(t, res, 9)
				require.Equal(t, sh.dir, res.Cwd, "Cwd")
				require.False(t, res.Restarted, "Restarted")
				sh.lives()
			}
		})
	}
}

// redefinedWords redefines commands that an implementation may use in its own scripts. Reserved
// words, as in alias case=…, are not among them.
func redefinedWords(t *testing.T, b *box) {
	words := []string{"command", "eval", "printf", "set", "unset", "test", "exit", "exec", "export",
		"builtin", "trap", "read", "kill", "stty", "true", "cat"}
	type row struct{ name, command, needs string }
	cases := []row{
		{"UnsetFunctions", `unset -f command eval printf _ss_q __ss; ! unset _ss_q`, ""},
		{"AllFunctionsUnset", `for f in $(compgen -A function); do unset -f "$f"; done`,
			"bash: compgen"},
		{"AllAliases", "alias " + strings.Join(words, "='echo ALIAS' ") + "='echo ALIAS'", ""},
	}
	for _, w := range words {
		cases = append(cases, row{"Alias/" + w, "alias " + w + "='echo ALIAS'", ""})
	}
	for _, w := range []string{"command", "eval", "printf", "set", "unset"} {
		cases = append(cases, row{"Function/" + w, w + "() { echo FUNCTION; }", ""})
	}
	for _, c := range cases {
		parallel(t, c.name, func(t *testing.T) {
			b.need(t, c.needs)
			sh := b.open(t)
			sh.exec(c.command) // some shells refuse some of these names
			for range 3 {
				res := sh.exec("echo said; (\\exit 5)")
				exitedWith(t, res, 5, "said\n")
				require.Falsef(t, res.Restarted, "Restarted: %s", show(res))
				require.Equal(t, sh.dir, res.Cwd, "Cwd")
			}
			sh.timesOut()
			same(t, sh.mark+"\n", sh.output("echo \"$MARK\""))
		})
	}
}

// hooks sets traps and options that print or run something for each command. They apply to the
// user's commands only.
func hooks(t *testing.T, b *box) {
	for _, c := range []struct{ name, command, needs, want string }{
		{"Debug", "trap 'echo D' DEBUG", "bash: trap DEBUG", "D\nsaid\n"},
		{"DebugInFunctions", "set -T; trap 'echo D' DEBUG", "bash: trap DEBUG", ""},
		{"DebugFails", "shopt -s extdebug; trap 'true' DEBUG", "bash: trap DEBUG", "said\n"},
		{"Err", "trap 'echo E' ERR", "bash: trap ERR", ""},
		{"ErrInFunctions", "set -E; trap 'echo E' ERR", "bash: trap ERR", ""},
		{"Return", "trap 'echo R' RETURN", "bash: trap RETURN", "said\n"},
		{"Trace", "set -x", "", ""},
		{"Verbose", "set -v", "", ""},
		{"Unset", "set -u", "", "said\n"},
		{"NoGlob", "set -f", "", "said\n"},
		{"NoClobber", "set -C", "", "said\n"},
	} {
		parallel(t, c.name, func(t *testing.T) {
			b.need(t, c.needs)
			sh := b.open(t)
			exited(t, sh.exec(c.command), 0)
			for range 3 {
				res := sh.exec("echo said; (exit 5)")
				exited(t, res, 5)
				require.False(t, res.Restarted, "Restarted")
				require.Contains(t, res.Output, "said\n")
				require.NotContains(t, res.Output, "133;", "a marker of the implementation")
				if c.want != "" {
					same(t, c.want, res.Output)
				}
			}
			waiting(t, sh.exec("read -r x"), sandbox.Line)
			exited(t, sh.input("y\n"), 0)
			sh.sleeps()
			exited(t, sh.interrupt(), 130)
		})
	}
	// The shell ends with the first command that fails.
	b.test(t, "ErrExit", func(t *testing.T, sh *shell) {
		res := sh.exec("set -e")
		exited(t, res, 0)
		require.False(t, res.Restarted, "Restarted")
		sh.output("echo said")
		res = sh.exec("false; echo not here")
		sh.restarted(res, 1)
		require.NotContains(t, res.Output, "not here")
	})
	// dash and ash execute nothing after it, so a fresh shell must come.
	b.test(t, "NoExec", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		within(b, t, "Execute", sh.executeCall("set -n"))
		within(b, t, "Execute", sh.executeCall(":"))
	})
}

// terminals changes the terminal's settings. Commands run and end all the same.
func terminals(t *testing.T, b *box) {
	for _, c := range []named{
		{"Raw", "stty raw -echo"},
		{"NoWaiting", "stty -icanon min 0 time 0"},
		{"NoWaitingEcho", "stty -icanon min 0"},
		{"NoSignals", "stty -isig -icanon -echo"},
		{"NoOutput", "stty -opost"},
		{"Stop", "stty tostop"},
		{"Keys", "stty intr a eof b erase c kill d susp e quit f"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			exited(t, sh.exec(c.command), 0)
			times(3, sh.lives)
			m := b.marker(t)
			// 130: Interrupt has ended it, and not a later signal.
			exited(t, sh.timeout(100*time.Millisecond, "sleep "+string(m)), 130)
			b.gone(t, m)
			sh.lives()
			exited(t, sh.exec("stty sane"), 0)
			sh.askAndAnswer()
		})
	}
}

// pinentry ends a command while an agent's program asks on the terminal. That program ends too, and
// does not read the input of the next command.
func pinentry(t *testing.T, b *box) {
	b.need(t, "gpg", "pinentry-curses", "tty")
	if b.suite.plain {
		b.suite.skip(t, "PlainSSHD: "+plainOrphans)
	}
	for _, c := range []struct {
		name string
		end  func(*shell) *sandbox.Result
	}{
		{"Interrupt", func(sh *shell) *sandbox.Result { return sh.interrupt() }},
		{"Timeout", func(sh *shell) *sandbox.Result {
			return sh.fails(sandbox.ErrTimeout, "Wait", sh.waitCall(
				sandbox.AtQuestion(sandbox.KeepWaiting), sandbox.Timeout(100*time.Millisecond)))
		}},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			t.Cleanup(func() { b.sh(t, "cd \"$1\"\n"+gnupgEnd, sh.dir) })
			sh.output("HOME=$PWD TERM=xterm; export HOME TERM; " + gnupg)
			waiting(t, sh.exec("gpg -c f"), sandbox.Keys)
			exited(t, c.end(sh))
			sh.exec(":")
			for range 3 {
				sh.askAndAnswer()
			}
		})
	}
}
