package sandboxtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// state checks that changes of the shell last from command to command.
func (s *suite) state(t *testing.T) {
	b := s.box(t)
	b.test(t, "18_Status", statuses)
	b.test(t, "18_Jobs", shellJobs)
	b.sections(t, []section{
		{"15_Directory", directories},
		{"16_Remembered", remembered},
		{"16_ChangedUnderTheEngine", changed},
		{"16_Traps", traps},
		{"17_Prompts", prompts},
		{"17_VirtualEnvironment", virtualEnvironment},
		{"19_Sessions", sessions},
		{"19_SessionList", sessionList},
		{"19_Like", likes},
	})
}

// directories changes the shell's directory, which Cwd reports.
func directories(t *testing.T, b *box) {
	b.test(t, "Change", func(t *testing.T, sh *shell) {
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
	})
	b.test(t, "Pushd", func(t *testing.T, sh *shell) {
		b.need(t, "bash: pushd")
		require.Equal(t, sh.dir+"/a", sh.exec("mkdir a; pushd a").Cwd)
		require.Equal(t, sh.dir, sh.exec("popd").Cwd)
	})
	b.test(t, "Link", func(t *testing.T, sh *shell) {
		res := sh.exec("mkdir real; ln -s real link; cd link; pwd")
		same(t, res.Cwd+"\n", res.Output) // Cwd is the shell's $PWD
		require.Equal(t, sh.dir, sh.exec("cd ..").Cwd)
	})
	for _, name := range []string{
		"a b", " ", "it's", `dq"x`, "new\nline", "trailing\n", "\n", "esc\x1b[31mx",
		"osc\x1b]0;t\x07x", "bel\ax", "cr\rx", "tab\tx",
		"-dash", "$HOME", "`echo x`", "$(echo x)", `back\slash`, `\w\$`, "semi;colon", "*",
		"bang!!", "%s%n", "ünï日本🎉", "\xff\xfe", "~", "#",
		strings.Repeat("long", 60), "\x1b]133;D;0;1;x\a", "del\x7fx", "c1\u009bx",
	} {
		b.test(t, fmt.Sprintf("Name%.20q", name), func(t *testing.T, sh *shell) {
			res := sh.exec("mkdir ./" + quote(name) + " && cd ./" + quote(name))
			exited(t, res, 0)
			require.Equal(t, sh.dir+"/"+name, res.Cwd)
			res = sh.exec("[ \"$PWD\" = " + quote(sh.dir+"/"+name) + " ] && echo here")
			exitedWith(t, res, 0, "here\n")
			require.Equal(t, sh.dir+"/"+name, res.Cwd)
			require.Equal(t, sh.dir, sh.exec("cd ..").Cwd)
		})
	}
	b.test(t, "Deleted", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("mkdir gone; cd gone; rmdir ../gone"), 0)
		same(t, "ok\n", sh.output("echo ok"))
		exited(t, sh.exec("ls /dev/null"), 0)
		exited(t, sh.exec("false"), 1)
		require.Equal(t, sh.dir, sh.exec("cd "+sh.dir).Cwd)
	})
	b.test(t, "DeletedByOthersAndTheShellEnds", func(t *testing.T, sh *shell) {
		sh.output("mkdir gone; cd gone")
		b.script(t, `rmdir "$1"`, sh.dir+"/gone")
		sh.restarted(sh.exec("exit 3"), 3)
		same(t, "ok\n", sh.output("echo ok"))
		require.Equal(t, sh.dir, sh.exec("cd "+sh.dir).Cwd)
	})
	b.test(t, "MovedByOthers", func(t *testing.T, sh *shell) {
		sh.output("mkdir old; cd old")
		b.script(t, `mv "$1/old" "$1/new"`, sh.dir)
		same(t, "ok\n", sh.output("echo ok"))
		require.Equal(t, sh.dir, sh.exec("cd "+sh.dir).Cwd)
	})
}

// remembered executes two commands: the second shows what the first has set.
func remembered(t *testing.T, b *box) {
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
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			sh.output(c.set)
			sh.lives()
			res := sh.exec(c.get)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			if c.want != "" {
				same(t, c.want, res.Output)
			} else { // the shell's message is before it
				require.Contains(t, res.Output, "kept\n")
			}
		})
	}
}

// changed changes settings of the shell that an implementation may rely on.
func changed(t *testing.T, b *box) {
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
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			res := sh.exec(c.command)
			if res.Restarted && strings.HasSuffix(c.name, "Mode") {
				// bash 5.2 --noediting crashes when eval turns on its line editor
				sh.restarted(res, 139)
			} else {
				exited(t, res, 0)
			}
			times(3, sh.goesOn)
			exited(t, sh.exec("(exit 42)"), 42)
			waiting(t, sh.exec("read -r x; echo \"got $x\""), sandbox.Line)
			require.Contains(t, sh.input("y\n").Output, "got y\n")
		})
	}
}

// statuses checks $? in the command after.
func statuses(t *testing.T, sh *shell) {
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
}

// shellJobs uses jobs of the shell.
func shellJobs(t *testing.T, sh *shell) {
	b := sh.b
	// busybox ash forgets the status of a job that has ended before wait
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
	sh.exec("kill -9 $!") // TERM would be ignored before its exec, as the shell ignores it
	sh.exec("wait")
	b.gone(t, m)
	require.NotContains(t, sh.exec("jobs; jobs").Output, "Running")
	sh.lives()

	// If a job ends while the shell is at its prompt, SIGCHLD interrupts the shell's read. That
	// must not end the shell.
	m = b.marker(t)
	exited(t, sh.exec("kept=1; sleep "+string(m)+" &"), 0)
	res := sh.exec("echo $!")
	b.script(t, `kill -9 "$1"`, strings.TrimSpace(res.Output))
	b.ended(t, m, "the job, after kill -9")
	res = sh.exec(`wait; echo "<$kept>"`)
	require.False(t, res.Restarted, "Restarted, though no command has ended the shell")
	require.Contains(t, res.Output, "<1>\n")
}

// traps sets traps in the shell.
func traps(t *testing.T, b *box) {
	b.test(t, "Exit", func(t *testing.T, sh *shell) {
		sh.output("trap 'echo bye' EXIT")
		sh.lives()
		res := sh.exec("exit 3")
		sh.restarted(res, 3)
		require.Contains(t, res.Output, "bye\n")
	})
	b.test(t, "Signal", func(t *testing.T, sh *shell) {
		sh.output("trap 'echo caught' USR1")
		sh.lives()
		require.Contains(t, sh.output("kill -USR1 $$; echo end"), "caught\n")
	})
	b.test(t, "Int", func(t *testing.T, sh *shell) {
		sh.output("trap 'echo caught' INT")
		sh.timesOut()
	})
	b.test(t, "Err", func(t *testing.T, sh *shell) {
		b.need(t, "bash: trap ERR")
		sh.output("trap 'echo failed' ERR")
		res := sh.exec("false")
		exited(t, res, 1)
		require.Contains(t, res.Output, "failed\n")
		same(t, "ok\n", sh.output("echo ok"))
		sh.exec("trap - ERR")
	})
	b.test(t, "Debug", func(t *testing.T, sh *shell) {
		b.need(t, "bash: trap DEBUG")
		sh.exec("trap 'last=$BASH_COMMAND' DEBUG") // as bash-preexec does
		times(3, sh.lives)
		sh.exec("trap 'echo tracing' DEBUG")
		require.Contains(t, sh.exec("echo ok").Output, "tracing\nok\n")
		sh.exec("trap - DEBUG")
	})
}

// prompts changes the prompt as activate scripts, conda, starship and .bashrc do.
func prompts(t *testing.T, b *box) {
	for _, c := range []struct{ name, command, needs string }{
		{"Prefix", `PS1="(env) $PS1"`, ""},
		{"Suffix", `PS1="$PS1(env) "`, ""},
		{"New", `PS1='$ '`, ""},
		{"Exported", `export PS1='[\u@\h \W]\$ '`, ""},
		{"Substitution", `PS1='$(echo prompt)> '`, ""},
		{"SeveralLines", "PS1='one\ntwo\n> '", ""},
		{"PS2", "PS2='more> '", ""},
		{"PS4", "PS4='trace '", ""},
		{"PromptCommand", `PROMPT_COMMAND='PS1="> "'`, ""},
		{"PromptCommandFunction",
			`hook() { local s=$?; PS1="$(echo "$s")> "; return $s; }; PROMPT_COMMAND=hook`,
			"bash: PROMPT_COMMAND"},
		{"PromptCommandTwice",
			`PROMPT_COMMAND="true; ${PROMPT_COMMAND:-:}"; PROMPT_COMMAND="$PROMPT_COMMAND; true"`,
			""},
		{"PromptCommandArray", `PROMPT_COMMAND=(true 'PS1="> "' false)`, "bash: arrays"},
		{"PromptCommandFails", `PROMPT_COMMAND=false`, ""},
		{"PS0", "PS0='run '", ""},
		{"Sourced", "printf 'PS1=\"(sourced) $PS1\"\\nhash -r 2>/dev/null\\n' > activate; . " +
			"./activate", ""},
		{"TitleInPrompt", `PS1='\[\e]0;title\a\]$ '`, ""},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			exited(t, sh.exec(c.command), 0)
			times(3, sh.lives)
			exited(t, sh.exec("(exit 42)"), 42)
			same(t, "42\n", sh.output("echo $?"))
			sh.timeout(100*time.Millisecond, "sleep 1000")
		})
	}
	// The output of PROMPT_COMMAND is a part of the command's, but nothing hangs, and no status is
	// lost.
	b.test(t, "PromptCommandPrints", func(t *testing.T, sh *shell) {
		b.need(t, "bash: PROMPT_COMMAND")
		exited(t, sh.exec(`PROMPT_COMMAND='echo noise'`), 0)
		for range 3 {
			res := sh.exec("echo ok; (exit 5)")
			exited(t, res, 5)
			require.Contains(t, res.Output, "ok\n")
		}
		exited(t, sh.exec("unset PROMPT_COMMAND"), 0)
	})
}

// virtualEnvironment activates and deactivates a Python environment.
func virtualEnvironment(t *testing.T, b *box) {
	b.need(t, "python3")
	sh := b.open(t)
	if code, _, stderr := b.sh(t, `python3 -m venv --without-pip "$1"`, sh.dir+"/venv"); code != 0 {
		b.suite.skip(t, "python3 in this box makes no virtual environments: "+
			strings.TrimSpace(stderr))
	}
	prefix := "python3 -c 'import sys; print(sys.prefix)'"
	before := sh.output(prefix)
	exited(t, sh.exec(". venv/bin/activate"), 0)
	same(t, sh.dir+"/venv\n", sh.output(prefix))
	same(t, sh.dir+"/venv\n", sh.output(`printf '%s\n' "$VIRTUAL_ENV"`))
	sh.lives()
	exited(t, sh.exec("deactivate"), 0)
	same(t, before, sh.output(prefix))
	sh.lives()
}
