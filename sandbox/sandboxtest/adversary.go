package sandboxtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// adversary: programs, files and users that would like a session to execute, show or believe
// something else than it was told.
func (s *suite) adversary(t *testing.T) {
	b := s.box(t)
	t.Run("LeftOver", func(t *testing.T) { leftOver(t, b) })
	t.Run("Thief", func(t *testing.T) { thief(t, b) })
	t.Run("Forged", func(t *testing.T) { forged(t, b) })
	t.Run("Names", func(t *testing.T) { wordsTaken(t, b) })
	t.Run("Hooks", func(t *testing.T) { hooks(t, b) })
	t.Run("Terminal", func(t *testing.T) { terminals(t, b) })
	t.Run("Pinentry", func(t *testing.T) { pinentry(t, b) })
}

// leftOver: what a command has not read is dropped and counted. No shell executes it, no other
// command gets it.
func leftOver(t *testing.T, b *box) {
	t.Parallel()
	const line = ": > proof\n"
	never := func(t *testing.T, sh *shell) {
		t.Helper()
		sh.lives()
		waiting(t, sh.exec("read -r x; echo \"<$x>\""), sandbox.Line)
		same(t, "mine\n<mine>\n", sh.input("mine\n").Output)
		same(t, "", sh.output("ls -A"))
		sh.lives()
	}
	t.Run("AtTheEnd", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		running(t, sh.exec("until [ -e go ]; do sleep 0.02; done; rm go",
			sandbox.Yield(50*time.Millisecond)))
		running(t, sh.input(line, sandbox.Yield(50*time.Millisecond)))
		b.script(t, `: > "$1"`, sh.dir+"/go")
		res := sh.wait()
		exited(t, res, 0)
		require.Equal(t, len(line), res.Unread, "Unread")
		never(t, sh)
	})
	t.Run("AfterTheAnswer", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r x; echo \"<$x>\""), sandbox.Line)
		res := sh.input("one\n" + line + "\n" + line)
		exited(t, res, 0)
		require.Contains(t, res.Output, "<one>\n")
		require.Equal(t, 2*len(line)+1, res.Unread, "Unread")
		never(t, sh)
	})
	t.Run("AllRead", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r x"), sandbox.Line)
		res := sh.input("one\n")
		exited(t, res, 0)
		require.Zero(t, res.Unread, "Unread")
		never(t, sh)
	})
	t.Run("AtATimeout", func(t *testing.T) { // more than a terminal holds
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		text := strings.Repeat(line, 20_000)
		res := sh.fails(sandbox.ErrTimeout, "Input", sh.inputs(text,
			sandbox.Timeout(300*time.Millisecond)))
		require.NotNil(t, res)
		exited(t, res, 130)
		require.Positive(t, res.Unread, "Unread")
		require.LessOrEqual(t, res.Unread, len(text), "Unread")
		b.gone(t, m)
		never(t, sh)
	})
	t.Run("AtAnInterrupt", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		running(t, sh.input(line, sandbox.Yield(50*time.Millisecond)))
		res := sh.interrupt()
		require.Equal(t, 130, res.ExitCode)
		require.Equal(t, len(line), res.Unread, "Unread")
		never(t, sh)
	})
	t.Run("AtAnExit", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r x; exit 3"), sandbox.Line)
		res := sh.input("one\n" + line)
		exited(t, res, 3)
		require.True(t, res.Restarted, "Restarted")
		sh.usable()
		same(t, "", sh.output("ls -A"))
	})
}

// thiefSource is a program whose child takes the foreground, reads whatever comes and says that all
// is well.
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

// thief: a process of another user that stays on the terminal gets no command and ends none.
func thief(t *testing.T, b *box) {
	t.Parallel()
	b.need(t, "setpriv", "python3")
	if !b.root(t) {
		b.suite.skip(t, "becoming another user needs root")
	}
	const become = "setpriv --reuid 65534 --regid 65534 --clear-groups "
	code, python, _ := b.sh(t, "for p in python3 /usr/bin/python3; do "+become+
		`"$p" -c pass >/dev/null 2>&1 && echo "$p" && exit; done; exit 1`)
	if code != 0 {
		b.suite.skip(t, "another user cannot run python3 here")
	}
	sh := b.open(t)
	m := b.marker(t)
	t.Cleanup(func() { b.slay(t, m) })
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
	same(t, "", b.script(t, `cat "$1"`, sh.dir+"/log"))
	b.slay(t, m)
	sh.lives()
}

// forgeSource prints the ends of commands, with all that it can find out of the session's words in
// them, and ends with 9.
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

// forged: a program can print what it likes. It does not end the command before its end, nor say
// its status.
func forged(t *testing.T, b *box) {
	t.Parallel()
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
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
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

// wordsTaken: what the engine says to the shell means the same, whatever the words in it have been
// made to mean (but for reserved ones, as by alias case=…).
func wordsTaken(t *testing.T, b *box) {
	t.Parallel()
	words := []string{"command", "eval", "printf", "set", "unset", "test", "exit", "exec", "export",
		"builtin", "trap", "read", "kill", "stty", "true", "cat"}
	cases := []struct{ name, command, needs string }{
		{"UnsetFunctions", `unset -f command eval printf _ss_q __ss; ! unset _ss_q`, ""},
		{"AllFunctionsUnset", `for f in $(compgen -A function); do unset -f "$f"; done`,
			"bash: compgen"},
		{"AllAliases", "alias " + strings.Join(words, "='echo ALIAS' ") + "='echo ALIAS'", ""},
	}
	for _, w := range words {
		cases = append(cases, struct{ name, command, needs string }{"Alias/" + w,
			"alias " + w + "='echo ALIAS'", ""})
	}
	for _, w := range []string{"command", "eval", "printf", "set", "unset"} {
		cases = append(cases, struct{ name, command, needs string }{"Function/" + w,
			w + "() { echo FUNCTION; }", ""})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			sh.exec(c.command) // some shells let nobody have such a name
			for range 3 {
				res := sh.exec("echo said; (\\exit 5)")
				exited(t, res, 5)
				same(t, "said\n", res.Output)
				require.Falsef(t, res.Restarted, "Restarted: %s", show(res))
				require.Equal(t, sh.dir, res.Cwd, "Cwd")
			}
			m := b.marker(t)
			sh.timeout(100*time.Millisecond, "sleep "+string(m))
			b.gone(t, m)
			res := sh.exec("echo \"$MARK\"")
			exited(t, res, 0)
			same(t, sh.mark+"\n", res.Output)
		})
	}
}

// hooks: traps and options that have something said or done for each command concern the user's
// commands alone.
func hooks(t *testing.T, b *box) {
	t.Parallel()
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
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			exited(t, sh.exec(c.command), 0)
			for range 3 {
				res := sh.exec("echo said; (exit 5)")
				exited(t, res, 5)
				require.False(t, res.Restarted, "Restarted")
				require.Contains(t, res.Output, "said\n")
				require.NotContains(t, res.Output, "133;", "the engine's own")
				if c.want != "" {
					same(t, c.want, res.Output)
				}
			}
			waiting(t, sh.exec("read -r x"), sandbox.Line)
			exited(t, sh.input("y\n"), 0)
			exited(t, sh.interruptOf("sleep "+string(b.marker(t))), 130)
		})
	}
	t.Run("ErrExit", func(t *testing.T) { // the shell ends with the first that fails, and says so
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("set -e")
		exited(t, res, 0)
		require.False(t, res.Restarted, "Restarted")
		sh.output("echo said")
		res = sh.exec("false; echo not here")
		exited(t, res, 1)
		require.True(t, res.Restarted, "Restarted")
		require.NotContains(t, res.Output, "not here")
		sh.usable()
	})
	t.Run("NoExec", func(t *testing.T) { // in dash and ash for ever: a fresh shell comes
		t.Parallel()
		sh := b.open(t)
		within(b, t, "Execute", sh.executes("set -n"))
		within(b, t, "Execute", sh.executes(":"))
		sh.usable()
	})
}

// interruptOf interrupts a command that goes on.
func (sh *shell) interruptOf(command string) *sandbox.Result {
	sh.t.Helper()
	running(sh.t, sh.exec(command, sandbox.Yield(50*time.Millisecond)))
	return sh.interrupt()
}

// terminals: whatever the terminal has been made to do, commands come and end. Both in one and over
// several.
func terminals(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []named{
		{"Raw", "stty raw -echo"},
		{"NoWaiting", "stty -icanon min 0 time 0"},
		{"NoWaitingEcho", "stty -icanon min 0"},
		{"NoSignals", "stty -isig -icanon -echo"},
		{"NoOutput", "stty -opost"},
		{"Stop", "stty tostop"},
		{"Keys", "stty intr a eof b erase c kill d susp e quit f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			exited(t, sh.exec(c.command), 0)
			for range 3 {
				sh.lives()
			}
			m := b.marker(t)
			// of the interrupt, not of what comes after the grace
			exited(t, sh.timeout(100*time.Millisecond, "sleep "+string(m)), 130)
			b.gone(t, m)
			sh.lives()
			exited(t, sh.exec("stty sane"), 0)
			waiting(t, sh.exec("read -r x; echo \"<$x>\""), sandbox.Line)
			same(t, "y\n<y>\n", sh.input("y\n").Output)
			sh.lives()
		})
	}
}

// pinentry: an agent's program that asks on the terminal goes with the command, and leaves the next
// one's answer alone.
func pinentry(t *testing.T, b *box) {
	t.Parallel()
	b.need(t, "gpg", "pinentry-curses", "tty")
	if b.suite.plain {
		b.suite.skip(t, "not to be told over a plain sshd: "+plainOrphans)
	}
	for _, c := range []struct {
		name string
		end  func(*shell) (*sandbox.Result, error)
	}{
		{"Interrupt", func(sh *shell) (*sandbox.Result, error) {
			return within(b, sh.t, "Interrupt", sh.interrupts())
		}},
		{"Timeout", func(sh *shell) (*sandbox.Result, error) {
			res, err := within(b, sh.t, "Wait", sh.waits(sandbox.AtQuestion(sandbox.KeepWaiting),
				sandbox.Timeout(100*time.Millisecond)))
			if errors.Is(err, sandbox.ErrTimeout) {
				err = nil
			}
			return res, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			t.Cleanup(func() { b.sh(t, "cd \"$1\"\n"+gnupgEnd, sh.dir) })
			sh.output("HOME=$PWD TERM=xterm; export HOME TERM; " + gnupg)
			waiting(t, sh.exec("gpg -c f"), sandbox.Keys)
			res, err := c.end(sh)
			require.NoError(t, err)
			exited(t, res)
			sh.exec(":")
			for range 3 {
				waiting(t, sh.exec("read -r x; echo \"<$x>\""), sandbox.Line)
				same(t, "answer\n<answer>\n", sh.input("answer\n").Output)
			}
		})
	}
}
