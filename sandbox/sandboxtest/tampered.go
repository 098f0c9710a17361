package sandboxtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// keepsShell says what a command does to the shell.
type keepsShell int

const (
	keeps    keepsShell = iota // the session has the same shell
	mayLose                    // Restarted may say that it has another
	mustLose                   // Restarted must say so
)

// tampered has commands that stop the shell, or change what an implementation uses of it: its
// descriptors, functions, prompts, options and variables. The status is the command's, or Restarted
// says that the shell was lost. Nothing hangs.
func tampered(t *testing.T, b *box) {
	for _, c := range []struct {
		name, command string
		code          int // of a command that has kept its shell
		shell         keepsShell
		needs         string
	}{
		{"Stop", "kill -STOP $$", 0, mustLose, ""},
		{"StopThenStatus", "kill -STOP $$; (exit 5)", 0, mustLose, ""},
		{"StopByAChild", "sh -c 'kill -STOP $PPID'; (exit 5)", 0, mustLose, ""},
		{"StopLater", "(sleep 0.2; kill -STOP $$) & sleep 1000", 0, mustLose, ""},
		{"StopIgnored", "kill -TSTP $$; kill -TTIN $$; (exit 5)", 5, keeps, ""},
		{"Suspend", "suspend", 0, mustLose, "bash: suspend"},
		{"SuspendByForce", "suspend -f", 0, mustLose, "bash: suspend"},

		{"Function/command", "command() { :; }; false", 1, keeps, ""},
		{"Function/commandReturns", "command() { return 0; }; (exit 5)", 5, keeps, ""},
		{"Function/commandPrints", "command() { echo FORGED; return 0; }; (exit 5)", 5, mayLose,
			""},
		{"Function/commandPasses", `command() { builtin command "$@"; }; (exit 5)`, 5, keeps,
			"bash: builtin"},
		{"Function/commandForgets", `command() { builtin command "$@"; return 0; }; (exit 5)`, 5,
			keeps, "bash: builtin"},
		{"Function/commandStops", "command() { kill -STOP $$; }; (exit 5)", 0, mustLose, ""},
		{"Function/commandStays", "command() { :; }; readonly -f command; (exit 5)", 5, mayLose,
			"bash: readonly -f"},
		{"Function/exit", `exit() { :; }; sh -c 'exit 5'`, 5, keeps, "bash: functions named exit"},
		{"Function/eval", "eval() { :; }; unset() { :; }; (exit 5)", 5, mayLose,
			"bash: functions named eval"},
		{"Function/all", "for f in unset unalias eval printf set exec command; do " +
			`\command eval "$f() { return 0; }"; done; (exit 5)`, 5, mayLose,
			"bash: functions named eval"},
		{"Disabled", "enable -n command eval printf; (exit 5)", 5, mayLose, "bash: enable"},
		{"Alias", "alias {='echo {'; (exit 5)", 5, mayLose, "bash: aliases of reserved words"},

		{"Prompt", "PS1='$(cat)'; (exit 5)", 5, keeps, ""},
		{"PromptStops", "PS1='$(kill -STOP $$)'; (exit 5)", 5, keeps, ""},
		{"PromptOfMoreLines", "PS2='$(cat)'; (exit 5)", 5, keeps, ""},
		{"PromptBefore", "PS0='$(cat)'; (exit 5)", 5, keeps, ""},

		{"IdleLimitHuge", "TMOUT=99999999999999999999; (exit 5)", 5, keeps, ""},
		{"IdleLimitNegative", "TMOUT=-5; (exit 5)", 5, keeps, ""},
		{"IdleLimitWord", "TMOUT=word; (exit 5)", 5, keeps, ""},

		{"EmacsOff", "set +o emacs; (exit 5)", 5, mayLose, "bash: line editing"},
		{"Emacs", "set -o emacs; (exit 5)", 5, mayLose, "bash: line editing"},
		{"Vi", "set -o vi; (exit 5)", 5, mayLose, "bash: line editing"},
		{"ViOff", "set +o vi; (exit 5)", 5, keeps, "bash: line editing"},
		{"Restricted", "set -r; (exit 5)", 5, mayLose, "bash: set -r"},
		{"OneCommand", "set -t; (exit 5)", 5, mayLose, "bash: set -t"},
		{"FewFiles", "ulimit -n 12; (exit 5)", 5, mayLose, ""},
		{"NoFiles", "ulimit -n 3; (exit 5)", 5, mayLose, ""},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			res := sh.exec(c.command)
			exited(t, res)
			switch {
			case res.Restarted:
				require.NotEqualf(t, keeps, c.shell, "Restarted: %s", show(res))
				sh.mayRestart = true
			default:
				require.NotEqualf(t, mustLose, c.shell, "not Restarted: %s", show(res))
				exited(t, res, c.code)
			}
			tells := sh.exec("echo $?; unset -f exit; sh -c 'exit 6'")
			exited(t, tells, 6, 137) // 137: the shell was lost before it ran the command
			if c.shell == keeps {
				exitedWith(t, tells, 6, fmt.Sprintf("%d\n", c.code))
			}
			sh.mayRestart = sh.mayRestart || c.shell != keeps
		})
	}
	// The hook of each prompt reads the shell's commands.
	b.test(t, "PromptCommand", func(t *testing.T, sh *shell) {
		b.need(t, "bash: PROMPT_COMMAND")
		exited(t, sh.exec("PROMPT_COMMAND='cat >/dev/null'; (exit 5)"), 5)
		sh.fails(sandbox.ErrTimeout, "Execute", sh.executeCall(":", sandbox.Timeout(time.Second)))
		sh.mayRestart = true
		sh.usable()
	})
}

// descriptors has commands that open and close descriptors for good. A script may use any: the
// implementation has none of them, or keeps its own where scripts do not look.
func descriptors(t *testing.T, b *box) {
	const many = "i=%d; while [ $i -lt %d ]; do eval \"exec $i>&-\"; i=$((i+1)); done; "
	b.test(t, "OfOneDigit", func(t *testing.T, sh *shell) {
		exited(t, sh.exec(fmt.Sprintf(many, 3, 10)+"(exit 5)"), 5)
		sh.output("exec 3>log 9>>log; echo three >&3")
		sh.output("echo nine >&9; exec 3>&- 9>&-")
		same(t, "three\nnine\n", sh.output("cat log"))
	})
	if !b.bash && !b.ash {
		return // dash takes 10 for a word
	}
	b.test(t, "Ten", func(t *testing.T, sh *shell) {
		sh.output("exec 10>log; echo one >&10")
		sh.output("echo two >&10")
		same(t, "one\ntwo\n", sh.output("exec 10>&-; cat log"))
	})
	b.test(t, "Lock", func(t *testing.T, sh *shell) {
		b.need(t, "flock")
		sh.output("exec 10>lock && flock -n 10")
		exited(t, sh.exec("flock -n lock true"), 1)
		sh.output("flock -n 10") // it has the lock
		sh.output("exec 10>&-; flock -n lock true")
	})
	b.test(t, "Named", func(t *testing.T, sh *shell) {
		b.need(t, "bash: {v}>")
		sh.output("exec {one}>log {two}>>log; echo one >&$one")
		sh.output("echo two >&$two; exec {one}>&- {two}>&-")
		same(t, "one\ntwo\n", sh.output("cat log"))
	})
	b.test(t, "OfChildren", func(t *testing.T, sh *shell) {
		b.need(t, "bash: descriptors above 9")
		sh.output("sh -c 'for f in /proc/self/fd/????; do [ ! -e \"$f\" ]; done'")
	})
	b.test(t, "AllClosed", func(t *testing.T, sh *shell) {
		b.need(t, "bash: descriptors above 9") // ash prints an error without end
		exited(t, sh.exec(fmt.Sprintf(many, 3, 256)+"(exit 5)"), 5)
		times(3, sh.lives)
	})
	b.test(t, "ClosedByName", func(t *testing.T, sh *shell) {
		b.need(t, "bash: descriptors above 9")
		sh.mayRestart = true
		exited(t, sh.exec("for f in /proc/$$/fd/*; do f=${f##*/}; "+
			"[ $f -lt 3 ] || eval \"exec $f>&-\"; done; (exit 5)"), 5)
		exited(t, sh.exec("(exit 6)"), 6)
		exited(t, sh.exec("(exit 6)"), 6)
	})
}
