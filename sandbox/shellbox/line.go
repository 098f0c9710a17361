package shellbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// A dialect makes the lines that a shell gets on its pipe. They are the same for bash, dash, busybox ash and other POSIX shells.
//
// Everything in them that a user may have redefined is written so that it does not matter: the backslashes keep aliases out, also of words that are reserved (case); "command" keeps functions out. What
// they print themselves, and what set -x, set -v or a trap of DEBUG prints about them, goes to /dev/null or comes before a command's output begins.
//
// Each line begins with an empty one: after an unclosed quote in eval, bash 5.2 takes no reserved word for one until the line has ended.
type dialect struct {
	secret string // of the session; nonces are made of it
	tty    string // the name of the shell's terminal
}

// nonce returns the nonce of the markers of that kind and number. Nobody who does not know the secret can tell it.
func (d dialect) nonce(kind byte, seq int) string {
	mac := hmac.New(sha256.New, []byte(d.secret))
	fmt.Fprintf(mac, "%c%d", kind, seq)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// setPrompt makes the prompt a sequence that shows nothing (FinalTerm's A): it is part of the output of a command that was aborted. It is empty where it is
// printed on the standard output (busybox ash), which may be a file; in bash it is not, because startup files leave off where PS1 is empty. "command eval"
// keeps a PS1 that is readonly from aborting the line. PS2 is empty for the same reasons: the shell prompts for each further line of a command.
const setPrompt = `\command [ "${PS1-}" = "${BASH_VERSION:+` + prompt + `}" ]||\command eval 'PS1=${BASH_VERSION:+"` + prompt + `"}' 2>/dev/null;` +
	`\command [ -z "${PS2-}" ]||\command eval PS2= 2>/dev/null`

const prompt = "\x1b]133;A\a"

// hello is the shell's first line. No history, no expansion of "!", no line editor. With ignoreeof, busybox ash does not take a read that a
// SIGCHLD interrupts for the end of its input.
func (d dialect) hello(seq int) string {
	return "\n" + setPrompt + `;unset HISTFILE;[ -z "${BASH_VERSION-}" ]||\set +o history +H 2>/dev/null` + "\n" +
		`[ "${BASH_VERSION-}" ]||\command set -o ignoreeof 2>/dev/null` + "\n" +
		`case ${LC_ALL-}${LC_CTYPE-}${LANG-} in '')export LANG=C.UTF-8;;esac` + d.ask(seq)
}

// ask has the shell say its status and directory, and nothing else: it is the D marker of command seq. set -o vi or emacs makes bash read its pipe by a
// line editor: that is undone. ($SHELLOPTS has other names with "vi" in them: no harm.)
func (d dialect) ask(seq int) string { return "\n" + d.end(seq) }

func (d dialect) end(seq int) string {
	nonce := d.nonce('D', seq)
	return fmt.Sprintf(`{ \command printf '\033]133;D;%d;%s;%%s;%%s;%s\007' "$?" "${PWD-}" >%s;`+
		`\command [ -z "${SHELLOPTS-}" -o -n "${SHELLOPTS+${SHELLOPTS##*vi*}}" -a -n "${SHELLOPTS+${SHELLOPTS##*emacs*}}" ]||\command set +o vi +o emacs;} >/dev/null 2>&1`+
		"\n", seq, nonce, nonce, d.tty)
}

// repair is for a shell that does not do as the lines above say, because a function or an alias stands in the way: it loses those. In bash, a function may
// stand even before eval and unset, but not in POSIX mode, and an assignment is enough to turn that on.
const repair = "\nPOSIXLY_CORRECT=1\n" + `\unset -f eval command printf set unset unalias 2>/dev/null` + "\n" + `\unalias case esac 2>/dev/null` + "\n" +
	`\unset POSIXLY_CORRECT` + "\n"

// command evaluates a command: with status as $? at its begin and, if apart is set, in a subshell. The shell parses the line as a whole before it runs
// it, so at the command's end it has read the line's end already. Within eval standard input is the terminal, for
// writing too, as after a login: tmux writes to it.
func (d dialect) command(seq, status int, text string, apart bool) string {
	text = strings.ReplaceAll(text, "\r\n", "\n") + "\n" // as a person ends it
	start := fmt.Sprintf(`{ \command printf '\033]133;C;%d;%s;%%s\007' "${!-}" >%s;} >/dev/null 2>&1`+"\n", seq, d.nonce('C', seq), d.tty)
	if status != 0 && !blank(text) {
		start += fmt.Sprintf("(\\exit %d)&&:\n", status) // &&: keeps set -e and an ERR trap out of it; $? is status all the same
	}
	eval := `\eval ` + shellquote.Quote(start+text) + " <>" + d.tty
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
