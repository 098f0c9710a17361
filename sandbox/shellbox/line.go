package shellbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// A dialect makes the lines that a shell gets on its pipe. They are the same for bash, dash,
// busybox ash and other POSIX shells.
//
// Everything in them that a user may have redefined is written so that it does not matter: the
// backslashes keep aliases out, also of words that are reserved (case); "command" keeps functions
// out. What they print themselves, and what set -x, set -v or a trap of DEBUG prints about them,
// goes to /dev/null or comes before a command's output begins.
//
// Each line begins with an empty one: after an unclosed quote in eval, bash 5.2 takes no reserved
// word for one until the line has ended.
type dialect struct {
	secret string // of the session; nonces are made of it
	tty    string // the name of the shell's terminal
	bash   bool   // it is bash
	high   bool   // and may have the descriptor own
}

// nonce returns the nonce of the markers of that kind and number. Nobody who does not know the
// secret can tell it.
func (d dialect) nonce(kind byte, seq int) string {
	mac := hmac.New(sha256.New, []byte(d.secret))
	fmt.Fprintf(mac, "%c%d", kind, seq)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// setPrompt makes the prompt a sequence that shows nothing (FinalTerm's A): it is part of the
// output of a command that was aborted. It is empty where it is printed on the standard output
// (busybox ash), which may be a file; in bash it is not, because startup files leave off where PS1
// is empty. "command eval" keeps a PS1 that is readonly from aborting the line. PS2 is empty for
// the same reasons: the shell prompts for each further line of a command.
const setPrompt = `\command [ "${PS1-}" = "${BASH_VERSION:+` + prompt +
	`}" ]||\command eval 'PS1=${BASH_VERSION:+"` + prompt + `"}' 2>/dev/null;` +
	`\command [ -z "${PS2-}" ]||\command eval PS2= 2>/dev/null`

const prompt = "\x1b]133;A\a"

// The shell's first line reports one of these in place of a status.
const (
	// what it evaluates with another standard input reads its commands nevertheless
	readsCommands = 3
	noTerminal    = 4 // /dev/tty is no device
	noNull        = 5 // /dev/null is no device
)

// hello is the shell's first line. It undoes what an environment makes of a bash: options, hooks of
// the prompt, the limit of an idle shell. bash -p has not looked at the others. No history, no
// expansion of "!", no line editor, no look for mail. With ignoreeof, busybox ash does not take a
// read that a SIGCHLD interrupts for the end of its input. env is what the shell was not to see
// when it started, see session.hide.
//
// Its answer goes to the standard output, for there may be no /dev/tty.
func (d dialect) hello(seq int, env *string) string {
	line := "\n" + setPrompt +
		`;unset HISTFILE;[ -z "${BASH_VERSION-}" ]||\set +o history +H 2>/dev/null` + "\n" +
		`[ -z "${BASH_VERSION-}" ]||{ \set +aefkntuvxCpET +o pipefail +o posix;` +
		`\shopt -u ` + noShopts + `;\unset TMOUT PROMPT_COMMAND PS0 MAILCHECK;} 2>/dev/null` +
		"\n" +
		`[ "${BASH_VERSION-}" ]||\command set -o ignoreeof 2>/dev/null` + "\n" +
		`case ${LC_ALL-}${LC_CTYPE-}${LANG-} in '')export LANG=C.UTF-8;;esac` + "\n"
	if env != nil {
		line += `export ENV=` + shellquote.Quote(*env) + "\n"
	}
	// The empty lines are for a read that takes its input from the wrong place.
	v := d.variable()
	line += fmt.Sprintf(`\eval '\read -r %[1]s' </dev/null;%[1]s=$?`+"\n\n\n"+
		`case $%[1]s${KSH_VERSION-} in 0*|*93*)%[1]s=%[2]d;;*)%[1]s=0;[ -c /dev/null ]||%[1]s=%[4]d;[ -c /dev/tty ]||%[1]s=%[3]d;;esac`+"\n",
		v, readsCommands, noTerminal, noNull)
	return line + d.say(seq, "") + "\n"
}

// noShopts are the options of bash's shopt that BASHOPTS may have set and that change what a
// command does.
const noShopts = "autocd cdable_vars cdspell compat31 dirspell dotglob execfail extdebug " +
	"failglob gnu_errfmt globstar " +
	"inherit_errexit lastpipe localvar_inherit localvar_unset nocaseglob nocasematch nullglob " +
	"shift_verbose xpg_echo"

// variable is the shell variable that holds a command's status from its end until the next command
// begins: what says it may be a function of the user's. Its name is secret, so that nobody makes it
// readonly.
func (d dialect) variable() string { return "_" + d.nonce('V', 0)[:12] }

// broken is the secret of the marker that the prompt for further lines shows while a command runs.
func (d dialect) broken() string { return d.nonce('P', 0)[:8] }

// ask has the shell say its status and directory, and nothing else: it is the D marker of command
// seq. If the last command's status is known, it is that one.
func (d dialect) ask(seq int) string {
	v := d.variable()
	return fmt.Sprintf("\n{ %[1]s=${%[1]s-$?};%[2]s;} >/dev/null 2>&1\n", v, d.say(seq, d.tty))
}

// end says the status of command seq. set -o vi or emacs makes bash read its pipe by a line editor:
// that is undone. ($SHELLOPTS has other names with "vi" in them: no harm.)
func (d dialect) end(seq int) string {
	more := ""
	if d.bash {
		more = `;\command eval PS2=;[ -z "${SHELLOPTS-}" -o -n "${SHELLOPTS+${SHELLOPTS##*vi*}}" -a -n "${SHELLOPTS+${SHELLOPTS##*emacs*}}" ]||\command set +o vi +o emacs`
	}
	return fmt.Sprintf("{ %s=$?;%s%s;} >/dev/null 2>&1\n", d.variable(), d.say(seq, d.tty), more)
}

// say prints the D marker of command seq to a file, or to the standard output.
func (d dialect) say(seq int, file string) string {
	nonce := d.nonce('D', seq)
	if file != "" {
		file = " >" + file
	}
	return fmt.Sprintf(
		`\command printf '\033]133;D;%d;%s;%%d;%%s%%d;%%s;%s\007' "$%s" "${BASH_VERSINFO+b}" "${TMOUT:-0}" "${PWD-}"%s`,
		seq, nonce, nonce, d.variable(), file)
}

// repair is for a shell that does not do as the lines above say, because a function or an alias
// stands in the way: it loses those. In bash, a function may stand even before eval and unset, but
// not in POSIX mode, and an assignment is enough to turn that on.
const repair = "\nPOSIXLY_CORRECT=1\n" +
	`\unset -f eval command printf set unset unalias 2>/dev/null` + "\n" +
	`\unalias case esac 2>/dev/null` + "\n" +
	`\unset POSIXLY_CORRECT` + "\n"

// own is the descriptor by which bash opens the terminal for a command. bash then keeps its pipe at
// the next one up, where else it would take the lowest from 10 on, which people use. Other shells
// have no names for descriptors above 9.
const own = 1000

// command evaluates a command: with status as $? at its begin and, if apart is set, in a subshell.
// The shell parses the line as a whole before it runs it, so at the command's end it has read the
// line's end already. Within eval standard input is the terminal, for writing too, as after a
// login: tmux writes to it.
//
// If bash shows the prompt for further lines while a command runs, it reads the terminal for
// commands and never comes back: set +o emacs makes it do so.
func (d dialect) command(seq, status int, text string, apart bool) string {
	text = strings.ReplaceAll(text, "\r\n", "\n") + "\n" // as a person ends it
	terminal, more := " <>"+d.tty, ""
	if d.bash {
		more = `;\command eval 'PS2="\e]133;P;` + d.broken() + `\a"'`
		if d.high {
			terminal = fmt.Sprintf(" %d<>%s <&%d", own, d.tty, own)
			more += fmt.Sprintf(`;\command exec %d>&-`, own)
		}
	}
	start := fmt.Sprintf(
		`{ \command printf '\033]133;C;%d;%s;%%s\007' "${!-}" >%s;\command unset %s%s;} >/dev/null 2>&1`+"\n",
		seq, d.nonce('C', seq), d.tty, d.variable(), more)
	if status != 0 && !blank(text) {
		// &&: keeps set -e and an ERR trap out of it; $? is status all the same
		start += fmt.Sprintf("(\\exit %d)&&:\n", status)
	}
	eval := `\eval ` + shellquote.Quote(start+text) + terminal
	if apart {
		eval = "(" + eval + ")"
	}
	return "\n" + setPrompt + ";" + eval + ";" + d.end(seq)
}

// blank reports whether there is nothing to execute in command.
func blank(command string) bool {
	for line := range strings.Lines(command) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}
