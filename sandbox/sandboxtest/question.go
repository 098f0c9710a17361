package sandboxtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// questions answers questions of programs, so that nothing outside the case's directory changes.
func questions(t *testing.T, b *box) {
	b.test(t, "rm", func(t *testing.T, sh *shell) {
		for _, c := range []struct{ answer, left string }{{"n", "f\n"}, {"y", ""}} {
			waiting(t, sh.exec(": > f; rm -i f"), sandbox.Line)
			exited(t, sh.input(c.answer+"\n"))
			same(t, c.left, sh.output("ls"))
		}
	})
	// The process has the script's name, and not that of its shell.
	b.test(t, "Script", func(t *testing.T, sh *shell) {
		exited(t, sh.exec(
			`printf '#!/bin/sh\nprintf "name? "\nread -r x\necho "hello $x"\n' > ask; chmod +x ask`))
		waiting(t, sh.exec("./ask"), sandbox.Line)
		res := sh.input("ann\n")
		exited(t, res)
		require.True(t, strings.HasSuffix(res.Output, "hello ann\n"), show(res))
	})
	b.test(t, "apt-get", aptGet)
	b.test(t, "ssh-keygen", func(t *testing.T, sh *shell) {
		b.need(t, "ssh-keygen")
		waiting(t, sh.exec("ssh-keygen -t ed25519 -f key"), sandbox.Secret)
		res := sh.input("open sesame\n")
		waiting(t, res, sandbox.Secret)
		require.NotContains(t, res.Output, "sesame")
		exited(t, sh.input("open sesame\n"), 0)
		exited(t, sh.exec("[ -s key ] && [ -s key.pub ]"), 0)
		waiting(t, sh.exec("ssh-keygen -t ed25519 -f key -N x"), sandbox.Line) // overwrite?
		exited(t, sh.input("n\n"))
	})
	// The question is not answered.
	b.test(t, "passwd", func(t *testing.T, sh *shell) {
		b.need(t, "passwd")
		res := sh.exec("passwd")
		if res.State == sandbox.Exited {
			b.suite.skip(t, "passwd asks nothing here: "+strings.TrimSpace(res.Output))
		}
		waiting(t, res, sandbox.Secret)
		exited(t, sh.interrupt())
	})
	b.test(t, "sudo", func(t *testing.T, sh *shell) {
		b.need(t, "sudo")
		if b.root(t) {
			b.suite.skip(t, "sudo does not ask root")
		}
		if user := strings.TrimSpace(b.script(t, "id -un")); user != "user" {
			b.suite.skip(t, "the password of "+user+" is not known: the test image's is user, "+
				"password sandshell")
		}
		res := sh.exec("sudo -k; sudo id -u")
		if res.State == sandbox.Exited {
			b.suite.skip(t, "sudo asks nothing here: "+strings.TrimSpace(res.Output))
		}
		waiting(t, res, sandbox.Secret)
		waiting(t, sh.input("wrong\n"), sandbox.Secret)
		res = sh.input("sandshell\n")
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "0\n"), show(res))
		require.NotContains(t, res.Output, "sandshell\n")
	})
}

// aptGet answers apt-get, which asks before it removes a package.
func aptGet(t *testing.T, sh *shell) {
	b := sh.b
	b.need(t, "apt-get", "dpkg-query")
	if !b.root(t) {
		b.suite.skip(t, "apt-get needs root")
	}
	installed := strings.Fields(
		b.script(t, `dpkg-query -W -f '${Package} ${db:Status-Status} ${Essential} ${Priority}\n' | grep ' installed no optional$' | sed -n '1s/ .*//p'`))
	if len(installed) == 0 {
		b.suite.skip(t, "the box has no optional package, which apt-get would ask about")
	}
	// remove needs no network, and removes nothing with this dpkg. Without locks, the case can
	// run in several boxes on one machine.
	res := sh.exec("apt-get -o Dir::Bin::dpkg=/bin/false -o Debug::NoLocking=1 remove " +
		installed[0])
	if res.State == sandbox.Exited && strings.Contains(res.Output, "lock") {
		b.suite.skip(t, "apt-get is in use: "+res.Output)
	}
	waiting(t, res, sandbox.Line)
	require.True(t, strings.HasSuffix(res.Output, "[Y/n] "), show(res))
	res = sh.input("n\n")
	exited(t, res, 1)
	require.Contains(t, res.Output, "Abort")
}

// repls types to interpreters.
func repls(t *testing.T, b *box) {
	for _, c := range []struct{ name, command, needs, question, answer, exit string }{
		{"Python", "python3", "python3", "print(6 * %d)", "%d\n", "exit(3)"},
		{"PythonI", "python3 -i -q -c 'x = 6'", "python3", "print(x * %d)", "%d\n", "exit(3)"},
		{"bc", "bc -q", "bc", "6 * %d", "%d\n", "quit"},
		{"sqlite3", "sqlite3 :memory:", "sqlite3", "select 6 * %d;", "%d\n", ".quit"},
		{"gdb", "gdb -q -nx", "gdb", "output 6 * %d", "%d", "quit"},
		{"sh", "sh", "sh", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"ShInteractive", "sh -i", "sh", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"ShWithThePromptExported", "export PS1; sh -i", "sh", "echo $((6 * %d))", "%d\n",
			"exit 3"},
		{"ShWithAllExported", "set -a; PS1=$PS1; set +a; sh -i", "sh", "echo $((6 * %d))", "%d\n",
			"exit 3"},
		{"bash", "bash --norc", "bash", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"BashWithThePromptExported", "export PS1 PROMPT_COMMAND; bash --norc", "bash",
			"echo $((6 * %d))", "%d\n", "exit 3"},
		{"busybox", "busybox ash", "busybox", "echo $((6 * %d))", "%d\n", "exit 3"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			if !b.has(t, c.needs) {
				b.suite.skip(t, "no "+c.needs+" in this box")
			}
			for range 2 {
				// without readline, or with it
				kinds := []sandbox.InputKind{sandbox.Line, sandbox.Keys}
				if strings.Contains(c.name, "Exported") && !b.bash {
					// the session's prompt turns off the echo, in each busybox ash that shows it
					kinds = append(kinds, sandbox.Secret)
				}
				waiting(t, sh.exec(c.command), kinds...)
				for i := range 5 {
					res := sh.input(fmt.Sprintf(c.question, i+1000) + "\n")
					waiting(t, res, kinds...)
					require.Contains(t, res.Output, fmt.Sprintf(c.answer, 6*(i+1000)))
				}
				res := sh.input(c.exit + "\n")
				if strings.Contains(c.exit, "3") {
					exited(t, res, 3)
				} else {
					exited(t, res, 0)
				}
				sh.lives()
			}
		})
	}
	b.test(t, "PythonKind", func(t *testing.T, sh *shell) {
		b.need(t, "python3")
		kind := sandbox.Keys
		if code, _, _ := b.sh(t, "python3 -c 'import readline'"); code != 0 {
			kind = sandbox.Line
		}
		res := sh.exec("python3")
		waiting(t, res, kind)
		require.Truef(t, strings.HasSuffix(res.Output, ">>> "), show(res))
		exited(t, sh.input("\x04"), 0)
	})
	b.test(t, "PythonOfSeveralLines", func(t *testing.T, sh *shell) {
		b.need(t, "python3")
		waiting(t, sh.exec("python3"), sandbox.Keys, sandbox.Line)
		res := sh.input("for i in range(3):\n    print('line', i * 7)\n\n")
		waiting(t, res, sandbox.Keys, sandbox.Line)
		if !strings.Contains(res.Output, "line 14\n") { // it had read a part
			sh.wait(sandbox.Until(regexp.MustCompile("line 14\n")))
		}
		exited(t, sh.interrupt())
	})
}
