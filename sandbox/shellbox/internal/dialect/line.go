package dialect

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// A Dialect makes the lines that a shell gets on its pipe. They are the same for bash, dash,
// busybox ash and other POSIX shells.
//
// The lines do not depend on what a user may have redefined. Backslashes keep aliases out, also
// those of reserved words (case). "command" keeps functions out. What the lines themselves print,
// and what set -x, set -v or a DEBUG trap prints about them, goes to /dev/null or comes before the
// command's output begins.
//
// Each line begins with an empty line: after an unclosed quote in eval, bash 5.2 recognizes no
// reserved word until the line has ended.
type Dialect struct {
	Secret string // of the shell; the nonces are made of it
	TTY    string // the name of the shell's terminal
	Bash   bool   // the shell is bash
	HighFD bool   // the shell is bash, and may use the descriptor terminalFD

	*nonces
	moreNonce string // of the MoreLines marker
	// statusVariable is the name of the shell variable that holds a command's number and status, as
	// in 7.130, from its end until the next command begins. (printf may be a function of the
	// user's, which changes $?.) The name is secret, so that nobody can make the variable readonly.
	statusVariable string
}

// New returns the Dialect of a shell of which nothing is known yet.
func New(secret string) Dialect {
	d := Dialect{Secret: secret, TTY: "/dev/tty", nonces: newNonces(secret)}
	d.moreNonce = d.nonce(MoreLines, 0)[:8]
	d.statusVariable = "_" + d.nonce('V', 0)[:12]
	return d
}

// Own returns a text that is in each Command and each question, and that no other text has.
func (d Dialect) Own() string { return d.statusVariable }

// nonces makes the nonces of a shell's markers. Its MAC is kept, because to make it takes longer
// than to use it.
type nonces struct {
	mu  sync.Mutex
	mac hash.Hash
}

func newNonces(secret string) *nonces { return &nonces{mac: hmac.New(sha256.New, []byte(secret))} }

// nonce returns the nonce of the marker of that kind and number. Only a program that knows the
// secret can compute it.
func (n *nonces) nonce(kind Kind, seq int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mac.Reset()
	n.mac.Write(strconv.AppendInt([]byte{byte(kind)}, int64(seq), 10))
	return hex.EncodeToString(n.mac.Sum(nil)[:16])
}

// setPrompt sets a prompt that shows nothing and executes nothing: a command in a prompt could read
// the shell's commands. The prompt is part of the output of a command that was aborted. In bash it
// is an invisible sequence (FinalTerm's A), because startup files stop where PS1 is empty. In other
// shells it is empty, because busybox ash prints it on the standard output, which may be a file.
// "command eval" keeps a readonly PS1 from aborting the line. PS2 is empty for the same reasons:
// the shell prompts for each further line of a command.
const setPrompt = `\command [ "${PS1-}" = "${BASH_VERSION:+` + prompt +
	`}" ]||\command eval 'PS1=${BASH_VERSION:+"` + prompt + `"}' 2>/dev/null;` +
	`\command [ -z "${PS2-}" ]||\command eval PS2= 2>/dev/null`

const prompt = "\x1b]133;A\a"

// A shell that cannot be used answers Hello with one of these in place of a status.
const (
	// ReadsCommands: eval with another standard input still reads the shell's commands.
	ReadsCommands = 3
	// NoTerminal: /dev/tty is no device.
	NoTerminal = 4
	// NoNull: /dev/null is no device.
	NoNull = 5
)

// Hello returns the shell's first lines. They undo what the environment may have set in bash:
// options, prompt hooks, the limit of an idle shell. (bash -p ignores the rest.) They turn off
// history, expansion of "!", the line editor and the check for mail. They set ignoreeof, because
// without it busybox ash takes a read that a SIGCHLD interrupts for the end of its input. If env is
// not nil, they export it as ENV, which the shell itself must not see when it starts.
//
// The answer goes to the standard output, because there may be no /dev/tty.
func (d Dialect) Hello(seq int, env *string) string {
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
	// The empty lines are for a read that reads from the wrong place.
	v := d.statusVariable
	line += fmt.Sprintf(`\eval '\read -r %[1]s' </dev/null;%[1]s=$?`+"\n\n\n"+
		`case $%[1]s${KSH_VERSION-} in 0*|*93*)%[1]s=%[2]d;;*)%[1]s=0;`+
		`[ -c /dev/null ]||%[1]s=%[4]d;[ -c /dev/tty ]||%[1]s=%[3]d;;esac`+"\n",
		v, ReadsCommands, NoTerminal, NoNull)
	return line + d.printEnd(seq, "$"+v, "") + "\n"
}

// noShopts are the options of bash's shopt that change what a command does. BASHOPTS may have set
// them.
const noShopts = "autocd cdable_vars cdspell compat31 dirspell dotglob execfail extdebug " +
	"failglob gnu_errfmt globstar " +
	"inherit_errexit lastpipe localvar_inherit localvar_unset nocaseglob nocasematch nullglob " +
	"shift_verbose xpg_echo"

// Ask returns a line that only asks: it has the shell print the End marker of number seq, with its
// status and directory. The status is the last command's, if that is known. Otherwise, it is $?.
func (d Dialect) Ask(seq int) string {
	v := d.statusVariable
	return fmt.Sprintf("\n{ %[1]s=${%[1]s-0.$?};%[2]s;%[3]s;} >/dev/null 2>&1\n", v,
		d.printEnd(seq, "$"+v, d.TTY), setPrompt)
}

// endLine prints the End marker of command seq and sets the prompts. It undoes set -o vi and emacs,
// with which bash would read its pipe by a line editor. ($SHELLOPTS has other names with "vi" in
// them, which does no harm.)
func (d Dialect) endLine(seq int) string {
	more := ""
	if d.Bash {
		more = `;\command eval PS2= PS0=;[ -z "${SHELLOPTS-}" -o ` +
			`-n "${SHELLOPTS+${SHELLOPTS##*vi*}}" -a -n "${SHELLOPTS+${SHELLOPTS##*emacs*}}" ]||` +
			`\command set +o vi +o emacs`
	}
	v := d.statusVariable
	return fmt.Sprintf("{ %s=%d.$?;%s%s;%s;} >/dev/null 2>&1\n", v, seq,
		d.printEnd(seq, "${"+v+"#*.}", d.TTY), more, setPrompt)
}

// printEnd prints the End marker of command seq to file, or to the standard output if file is "".
func (d Dialect) printEnd(seq int, status, file string) string {
	nonce := d.nonce(End, seq)
	if file != "" {
		file = " >" + file
	}
	return fmt.Sprintf(
		`\command printf '\033]133;D;%d;%s;%%s;%%s%%d;%%s;%s\007' `+
			`"%s" "${BASH_VERSINFO+b}" "${TMOUT:-0}" "${PWD-}"%s`,
		seq, nonce, nonce, status, file)
}

// Renew returns a line for the shell of a session that is a copy of another one. It sets the
// environment variables env, "NAME=value", and gives RANDOM, in a shell that has it, another seed.
// $? is 0 afterwards.
func Renew(env []string, seed uint32) string {
	line := `\command [ "${RANDOM-}${RANDOM-}" = "${RANDOM-}${RANDOM-}" ]||` +
		fmt.Sprintf(`\command eval 'RANDOM=%d'||\command :;`, seed)
	for _, kv := range env {
		line += `\command export ` + shellquote.Quote(kv) + `||\command :;`
	}
	return "\n{ " + line + `\command :;} >/dev/null 2>&1` + "\n"
}

// Repair removes functions and aliases that keep a shell from obeying the other lines. In bash, a
// function may hide even eval and unset, but not in POSIX mode, which an assignment turns on.
const Repair = "\nPOSIXLY_CORRECT=1\n" +
	`\unset -f eval command printf set unset unalias 2>/dev/null` + "\n" +
	`\unalias case esac 2>/dev/null` + "\n" +
	`\unset POSIXLY_CORRECT` + "\n"

// terminalFD is the descriptor by which bash opens the terminal for a command. bash then keeps its
// pipe at the next descriptor up. Otherwise bash would use the lowest from 10 on, which people use
// too. Other shells have no names for descriptors above 9.
const terminalFD = 1000

// Command returns the line that evaluates the command text, with status as $? at its begin. If
// subshell is set, the command runs in a subshell. The shell parses the whole line before it runs
// it, so it has read the line's end before the command begins. Within eval, standard input is the
// terminal, open for writing too as after a login, because tmux writes to it.
//
// If bash prompts for further lines while a command runs, it reads commands from the terminal and
// never comes back. (set +o emacs makes it do so.) So PS2 prints the MoreLines marker during a
// command.
func (d Dialect) Command(seq, status int, text string, subshell bool) string {
	text += "\n"
	terminal, more := " <>"+d.TTY, ""
	if d.Bash {
		more = `;\command eval 'PS2="\e]133;P;` + d.moreNonce + `\a"'`
		if d.HighFD {
			terminal = fmt.Sprintf(" %d<>%s <&%d", terminalFD, d.TTY, terminalFD)
			more += fmt.Sprintf(`;\command exec %d>&-`, terminalFD)
		}
	}
	start := fmt.Sprintf(
		`{ \command printf '\033]133;C;%d;%s;%%s\007' "${!-}" >%s;`+
			`\command unset %s%s;} >/dev/null 2>&1`+"\n",
		seq, d.nonce(Begin, seq), d.TTY, d.statusVariable, more)
	if status != 0 && !blank(text) {
		// && keeps set -e and an ERR trap from acting. $? is status all the same.
		start += fmt.Sprintf("(\\command exit %d)&&\\command :\n", status)
	}
	eval := `\eval ` + shellquote.Quote(start+text) + terminal
	if subshell {
		eval = "(" + eval + ")"
	}
	return "\n" + eval + ";" + d.endLine(seq)
}

// blank reports whether command holds nothing to execute.
func blank(command string) bool {
	for line := range strings.Lines(command) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}
