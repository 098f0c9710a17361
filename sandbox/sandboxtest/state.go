package sandboxtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// state: what a command did to the shell is there at the next.
func (s *suite) state(t *testing.T) {
	b := s.box(t)
	t.Run("15_Directory", func(t *testing.T) { directories(t, b) })
	t.Run("16_Remembered", func(t *testing.T) { remembered(t, b) })
	t.Run("16_ChangedUnderTheEngine", func(t *testing.T) { changed(t, b) })
	t.Run("16_Traps", func(t *testing.T) { traps(t, b) })
	t.Run("17_Prompts", func(t *testing.T) { prompts(t, b) })
	t.Run("17_VirtualEnvironment", func(t *testing.T) { virtualEnvironment(t, b) })
	t.Run("18_Status", func(t *testing.T) { statuses(t, b) })
	t.Run("18_Jobs", func(t *testing.T) { shellJobs(t, b) })
	t.Run("19_Sessions", func(t *testing.T) { sessions(t, b) })
}

func directories(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Change", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("mkdir -p a/b && cd a/b")
		exited(t, res, 0)
		require.Equal(t, sh.dir+"/a/b", res.Cwd)
		same(t, sh.dir+"/a/b\n", sh.output("pwd"))
		res = sh.exec("cd -")
		same(t, sh.dir+"\n", res.Output)
		require.Equal(t, sh.dir, res.Cwd)
		res = sh.exec("(cd a)")
		require.Equal(t, sh.dir, res.Cwd, "after cd in a subshell")
		res = sh.exec("cd a/nothing 2>/dev/null")
		require.NotZero(t, res.ExitCode)
		require.Equal(t, sh.dir, res.Cwd, "after a cd that failed")
		res = sh.exec("HOME=$PWD/a; cd")
		require.Equal(t, sh.dir+"/a", res.Cwd, "after a bare cd")
		res = sh.exec("cd b; cd ../..; false")
		require.Equal(t, sh.dir, res.Cwd, "after several and a status")
		sh.lives()
	})
	t.Run("Pushd", func(t *testing.T) {
		t.Parallel()
		b.need(t, "bash: pushd")
		sh := b.open(t)
		require.Equal(t, sh.dir+"/a", sh.exec("mkdir a; pushd a").Cwd)
		require.Equal(t, sh.dir, sh.exec("popd").Cwd)
		sh.lives()
	})
	t.Run("Link", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("mkdir real; ln -s real link; cd link; pwd")
		same(t, res.Cwd+"\n", res.Output) // as the shell sees it
		require.Equal(t, sh.dir, sh.exec("cd ..").Cwd)
		sh.lives()
	})
	for _, name := range []string{
		"a b", " ", "it's", `dq"x`, "new\nline", "trailing\n", "\n", "esc\x1b[31mx",
		"osc\x1b]0;t\x07x", "bel\ax", "cr\rx", "tab\tx",
		"-dash", "$HOME", "`echo x`", "$(echo x)", `back\slash`, `\w\$`, "semi;colon", "*",
		"bang!!", "%s%n", "ünï日本🎉", "\xff\xfe", "~", "#",
		strings.Repeat("long", 60), "\x1b]133;D;0;1;x\a", "del\x7fx", "c1\u009bx",
	} {
		t.Run(fmt.Sprintf("Name%.20q", name), func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			res := sh.exec("mkdir ./" + quote(name) + " && cd ./" + quote(name))
			exited(t, res, 0)
			require.Equal(t, sh.dir+"/"+name, res.Cwd)
			res = sh.exec("[ \"$PWD\" = " + quote(sh.dir+"/"+name) + " ] && echo here")
			exited(t, res, 0)
			same(t, "here\n", res.Output)
			require.Equal(t, sh.dir+"/"+name, res.Cwd)
			require.Equal(t, sh.dir, sh.exec("cd ..").Cwd)
			sh.lives()
		})
	}
	t.Run("Deleted", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("mkdir gone; cd gone; rmdir ../gone"), 0)
		same(t, "ok\n", sh.output("echo ok"))
		exited(t, sh.exec("ls /dev/null"), 0)
		exited(t, sh.exec("false"), 1)
		require.Equal(t, sh.dir, sh.exec("cd "+sh.dir).Cwd)
		sh.lives()
	})
	t.Run("DeletedByOthersAndTheShellEnds", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("mkdir gone; cd gone")
		b.script(t, `rmdir "$1"`, sh.dir+"/gone")
		res := sh.exec("exit 3")
		exited(t, res, 3)
		require.True(t, res.Restarted, "Restarted")
		same(t, "ok\n", sh.output("echo ok"))
		require.Equal(t, sh.dir, sh.exec("cd "+sh.dir).Cwd)
	})
	t.Run("MovedByOthers", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("mkdir old; cd old")
		b.script(t, `mv "$1/old" "$1/new"`, sh.dir)
		same(t, "ok\n", sh.output("echo ok"))
		require.Equal(t, sh.dir, sh.exec("cd "+sh.dir).Cwd)
		sh.lives()
	})
}

// remembered sets something in one Execute and looks at it in the next.
func remembered(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, set, get, want, needs string }{
		{"Variable", "x='a  b'", `printf '%s\n' "$x"; sh -c 'echo "<$x>"'`, "a  b\n<>\n", ""},
		{"Exported", "export x='a  b'", `sh -c 'printf "%s\n" "$x"'`, "a  b\n", ""},
		{"Unset", "y=1; export y; unset y", `echo "<${y-unset}>"`, "<unset>\n", ""},
		{"ValueOfSeveralLines", "x='a\nb\n'", `printf '%s' "$x"`, "a\nb\n", ""},
		{"LargeValue", "x=$(seq 1 20000)", `printf '%s\n' "$x"`, lines(1, 20000), ""},
		{"Array", "a=(one 'two words' three)", `printf '%s\n' "${a[@]}" "${#a[@]}"`,
			"one\ntwo words\nthree\n3\n", "bash: arrays"},
		{"AssociativeArray", "declare -A m=([k]=v)", `echo "${m[k]}"`, "v\n", "bash: arrays"},
		{"Positional", "set -- a 'b c'", `printf '%s\n' "$#" "$2"`, "2\nb c\n", ""},
		{"Function", "f() { echo \"f $1\"; }", "f x", "f x\n", ""},
		{"FunctionOverACommand", `cd() { command cd "$@" && echo "in ${PWD##*/}"; }`,
			"mkdir sub; cd sub; cd .. >/dev/null", "in sub\n", ""},
		{"Alias", "alias hi='echo hello'", "hi there", "hello there\n", ""},
		{"AliasOfACommand", "alias ls='ls -1a'", "ls", ".\n..\n", ""},
		{"Unalias", "alias hi='echo hello'; unalias hi", "hi 2>/dev/null || echo none", "none\n",
			""},
		{"Umask", "umask 027", "umask; : > f; ls -l f | cut -c 1-10", "0027\n-rw-r-----\n", ""},
		{"Ulimit", "ulimit -n 64", "ulimit -n; sh -c 'ulimit -n'", "64\n64\n", ""},
		{"FileDescriptor", "exec 3>f; echo a >&3", "echo b >&3; exec 3>&-; cat f", "a\nb\n", ""},
		{"OptionNoglob", "touch f; set -f", "echo *", "*\n", ""},
		{"OptionNoclobber", "set -C", ": > f; cat /dev/null > f || echo kept", "", ""},
		{"OptionAllexport", "set -a; x=1", "sh -c 'echo $x'", "1\n", ""},
		{"OptionPipefail", "set -o pipefail", "false | true || echo failed", "failed\n",
			"bash: pipefail"},
		{"OptionExtglob", "shopt -s extglob nullglob", "echo @(x|y)z", "\n", "bash: shopt"},
		{"Locale", "LC_ALL=C; export LC_ALL", "echo \"$LC_ALL\"", "C\n", ""},
		{"Path", "mkdir bin; printf '#!/bin/sh\\necho tool\\n' > bin/tool; chmod +x bin/tool; " +
			"PATH=$PWD/bin:$PATH", "tool", "tool\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			sh.output(c.set)
			sh.lives()
			res := sh.exec(c.get)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			if c.want != "" {
				same(t, c.want, res.Output)
			} else {
				require.Contains(t, res.Output, "kept\n")
			}
			sh.lives()
		})
	}
}

// changed changes something that an engine would lean on.
func changed(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs string }{
		{"NoPath", "PATH=/nonexistent", ""},
		{"PathUnset", "unset PATH", ""},
		{"HomeUnset", "unset HOME", ""},
		{"IFS", "IFS=/:12", ""},
		{"IFSEmpty", "IFS=", ""},
		{"SetU", "set -u", ""},
		{"SetF", "set -f", ""},
		{"SetC", "set -C", ""},
		{"SetA", "set -a", ""},
		{"SetV", "set -v; set +v", ""},
		{"SetM", "set +m", ""},
		{"SetB", "set -b", ""},
		{"Posix", "set -o posix", "bash: set -o posix"},
		{"ViMode", "set -o vi", "bash: line editing"},
		{"EmacsMode", "set -o emacs", "bash: line editing"},
		{"History", "set -H; HISTFILE=$PWD/h; set -o history", "bash: history"},
		{"Term", "TERM=dumb; export TERM", ""},
		{"TermUnset", "unset TERM", ""},
		{"Columns", "COLUMNS=10 LINES=3; export COLUMNS LINES", ""},
		{"Locale", "LC_ALL=C LANG=C; export LC_ALL LANG", ""},
		{"UnderscoreVariables", "c=x s=x n=x q=x cmd=x", ""},
		{"ReadonlyMarkers", "readonly c=x s=x n=x", ""},
		{"Aliases", "alias test=false trap=false stty=false unset=false set=false true=false", ""},
		{"Umask", "umask 777", ""},
		{"ManyArguments", "set -- $(seq 1 5000)", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			res := sh.exec(c.command)
			lives := sh.lives
			if res.Restarted && strings.HasSuffix(c.name, "Mode") {
				// bash 5.2 --noediting is killed by its own bug when eval turns its line editor on.
				exited(t, res, 139)
				lives = sh.usable
			} else {
				exited(t, res, 0)
			}
			for range 3 {
				lives()
			}
			exited(t, sh.exec("(exit 42)"), 42)
			res = sh.exec("read -r x; echo \"got $x\"")
			waiting(t, res, sandbox.Line)
			require.Contains(t, sh.input("y\n").Output, "got y\n")
			lives()
		})
	}
}

func statuses(t *testing.T, b *box) {
	t.Parallel()
	sh := b.open(t)
	for _, c := range []struct {
		command string
		status  int
	}{
		{"false", 1}, {"true", 0}, {"(exit 42)", 42}, {"(a", 2}, {"nosuchcommand", 127},
		{"sh -c 'kill -9 $$'", 137}, {"false | true", 0}, {"f() { return 6; }; f", 6},
	} {
		exited(t, sh.exec(c.command), c.status)
		same(t, fmt.Sprintf("%d\n", c.status), sh.output("echo $?"))
	}
	sh.timeout(100*time.Millisecond, "sleep 1000")
	same(t, "130\n", sh.output("echo $?"))
	sh.lives()
}

func shellJobs(t *testing.T, b *box) {
	t.Parallel()
	sh := b.open(t)
	// busybox ash forgets what has ended before it is waited for
	exited(t, sh.exec("(until [ -e go ]; do sleep 0.02; done; exit 3) & pid=$!"), 0)
	exited(t, sh.exec(`[ "$pid" = "$!" ]`), 0)
	exited(t, sh.exec(": > go; wait $!"), 3)
	sh.lives()
	exited(t, sh.exec("sleep 1 &"), 0)
	exited(t, sh.exec("fg"), 0)
	sh.lives()
	m := b.marker(t)
	exited(t, sh.exec("sleep "+string(m)+" &"), 0)
	require.Contains(t, sh.output("jobs"), string(m))
	sh.exec("kill -9 $!") // before its exec, it ignores TERM as the shell does
	sh.exec("wait")
	b.gone(t, m)
	require.NotContains(t, sh.exec("jobs; jobs").Output, "Running")
	sh.lives()

	// A job that ends while the shell is at its prompt must not end the shell: SIGCHLD interrupts
	// its read.
	m = b.marker(t)
	exited(t, sh.exec("kept=1; sleep "+string(m)+" &"), 0)
	res := sh.exec("echo $!")
	// before its exec, it ignores TERM as the shell does
	b.script(t, `kill -9 "$1"`, strings.TrimSpace(res.Output))
	b.eventually(t, func() bool {
		return len(b.processes(t, m)) == 0
	}, "the end of what was killed")
	res = sh.exec(`wait; echo "<$kept>"`)
	require.False(t, res.Restarted, "the shell has been restarted")
	require.Contains(t, res.Output, "<1>\n")
	sh.lives()
}
