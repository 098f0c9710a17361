package shellbox

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// A dialect is what a shell has beyond POSIX, as far as it matters for typing commands to it.
type dialect int

const (
	posix dialect = iota // dash
	bash
	ash // busybox, and others that know $'…'
)

// A shell knows how to talk to the shell of one session.
type shell struct {
	dialect dialect
	nonce   string
}

// The length of a typed line. A terminal in canonical mode silently cuts a line at 4,096 bytes (N_TTY_BUF_SIZE), busybox ash at
// 1,024 (FEATURE_EDITING_MAX_LEN).
func (sh shell) lineMax() int {
	if sh.dialect == ash {
		return 900
	}
	return 3500
}

// initLines returns the lines that make an interactive shell at its prompt ours; seq is the number that its next prompt shows. $? stays.
// The last of them says on /dev/tty what the prompt says: the shell's own output may be elsewhere, after exec >file.
// They work in every dialect, and say which it is.
//
//   - PS1 is the marker. printf makes it, so that what is typed, and maybe echoed, holds no marker.
//   - No history, and no expansion of "!". No line editor, even if a command asks for one (set -o vi).
//   - A command may change PS1 (conda and virtualenv do). A prompt command of bash that does so each time (starship) gets another behind it.
//   - busybox ash edits lines, at 20 ms each (a usleep after the Enter key), unless the terminal's echo is off at the prompt: its
//     prompt turns it off. Programs want it on, or nobody could tell a question for a password from another: see commandLines.
//     Without the editor it reads by fgets, and takes a read that SIGCHLD interrupts for the end of its input: a program in the
//     background that ended while the shell was at its prompt would end the shell. With ignoreeof it reads on, 50 times between commands.
//   - What other shells may not be able to parse is in an eval: dash drops the whole line of an array's assignment.
func (sh shell) initLines(seq int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `_ss_x=$?;PS2=;_ss_q=%d;_ss_r(){ return "$1"; };_ss_d=0;case $'x' in x)_ss_d=2;;esac;`, seq)
	b.WriteString(`unset HISTFILE;set +o history +o emacs +o vi 2>/dev/null` + "\n")
	fmt.Fprintf(&b, `_ss_c(){ printf '\033]133;C;%%s;%%s;%s\007' "$1" "$3" >/dev/tty;return "$2"; };`, sh.nonce)
	fmt.Fprintf(&b, `_ss_e(){ case ${SHELLOPTS-} in *vi*|*emacs*)set +o vi +o emacs;;esac;`+
		`printf '\033]133;D;%%s;%%s;%%s;%%s;%s\007' "$1" "$_ss_q" "$$" "$PWD" >/dev/tty;return "$1"; };`, sh.nonce)
	b.WriteString("\n")
	fmt.Fprintf(&b, `_ss_p="$(printf '\033]133;D;$?;$_ss_q;$$;$PWD;%s\007')";`, sh.nonce)
	b.WriteString(`case ${LC_ALL-}${LC_CTYPE-}${LANG-} in '')export LANG=C.UTF-8;;esac` + "\n")
	b.WriteString(`[ -z "${BASH_VERSION-}" ]||eval ` + shellquote.Quote(`_ss_d=1;set +H;shopt -s promptvars;case "${PROMPT_COMMAND[*]}" in ''|*_ss_p*);;`+
		`*)PROMPT_COMMAND+=("PS1=\$_ss_p");((BASH_VERSINFO[0]*100+BASH_VERSINFO[1]>=501))||`+
		`PROMPT_COMMAND=$PROMPT_COMMAND$'\n''PS1=$_ss_p';;esac`) +
		`;[ "$_ss_d" != 2 ]||set -o ignoreeof 2>/dev/null` + "\n")
	b.WriteString(`[ "$_ss_d" != 2 ]||_ss_p=${_ss_p%%'$PWD'*}'${PWD//\\/\\\\}'${_ss_p#*'$PWD'}'$(command stty -echo 2>/dev/null)';`)
	fmt.Fprintf(&b, `printf '\033]133;D;%%s;%d;%%s;%%s;%s\007' `, helloSeq, sh.nonce)
	fmt.Fprintf(&b, `"$_ss_d" "$$" "$PWD" >/dev/tty;printf '\033]133;D;%%s;%d;%%s;%%s;%s\007' "$_ss_x" "$$" "$PWD" >/dev/tty;PS1=$_ss_p;_ss_r "$_ss_x"`+"\n", seq, sh.nonce)
	return b.Bytes()
}

// helloSeq marks what initLines has the shell say before its prompt: a D marker whose status is the dialect.
const helloSeq = 1000000000

// commandLines returns what is typed to have command number seq evaluated: with status as $? at its begin and, if apart is set, in a
// subshell. The shell says its markers on /dev/tty: its standard output may be elsewhere, and only the command's output belongs there.
// First eval says where the output starts, so that neither the echo of these lines nor set -x's trace of them is part of the output.
// piece.trimTrace cuts off what set -x traces after the command.
func (sh shell) commandLines(seq, status int, command string, apart bool) []byte {
	command = strings.ReplaceAll(command, "\r\n", "\n") + "\n" // as a person ends it
	start := fmt.Sprintf(`command printf '\033]133;C;%d;%%s;%s\007' "${!-}" >/dev/tty`, seq, sh.nonce) + "\n"
	if status != 0 && !blank(command) {
		// &&: keeps set -e and an ERR trap out of it; $? is status all the same.
		start = fmt.Sprintf(`_ss_c %d %d "${!-}" 2>/dev/null&&:`, seq, status) + "\n"
	}
	// _ss_e says that the command has ended, as the prompt does after it. Either alone would not do: what follows a command that is
	// aborted (the interrupt key, an expansion error) is not executed; a command may change PS1; and after an unclosed quote in eval,
	// bash 5.2 shows the prompt as it was expanded before, with the status of then.
	before, after := fmt.Sprintf("_ss_q=%d;", seq), ";_ss_e \"$?\"&&:\n"
	if sh.dialect == ash {
		before += "command stty echo 2>/dev/null;"
	}
	if apart {
		before, after = before+"(", ")"+after
	}
	var b bytes.Buffer
	if line := before + "eval " + sh.quote(start+command) + after; len(line) <= sh.lineMax() {
		b.WriteString(line)
		return b.Bytes()
	}
	set := "_ss_c="
	for _, piece := range sh.pieces(command) {
		b.WriteString(set + piece + "\n")
		if set = "_ss_c=$_ss_c"; sh.dialect == bash {
			set = "_ss_c+="
		}
	}
	b.WriteString(before + "eval " + sh.quote("unset _ss_c;"+start) + `"$_ss_c"` + after)
	return b.Bytes()
}

// tidyLine is what is typed before the first command after one that was killed. busybox ash gives each command the terminal's modes
// that it found at its prompt, and these may be what a full-screen program has left.
func (sh shell) tidyLine() []byte {
	if sh.dialect == ash {
		return []byte("\ncommand stty sane -onlcr -echoctl 2>/dev/null\n")
	}
	return []byte("\n")
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

// pieces returns text quoted in pieces that fit a line each.
func (sh shell) pieces(text string) []string {
	var pieces []string
	for len(text) > 0 {
		n, size := 0, 0
		for n < len(text) && size < sh.lineMax()-64 {
			size += len(sh.escape(text[n]))
			n++
		}
		pieces = append(pieces, sh.quote(text[:n]))
		text = text[n:]
	}
	return pieces
}

// quote returns text as one word. It has no byte that a terminal takes for a control but "\n" and "\t", and for ash, which may be editing
// the line, only printable ASCII.
func (sh shell) quote(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8 + 3)
	if sh.dialect == posix {
		b.WriteString("'")
	} else {
		b.WriteString("$'")
	}
	for i := range len(text) {
		b.WriteString(sh.escape(text[i]))
	}
	b.WriteString("'")
	return b.String()
}

// escape returns the byte as it stands within quote's quotes.
func (sh shell) escape(c byte) string {
	control := c < ' ' || c == 0x7f
	if sh.dialect == posix {
		switch {
		case c == '\'':
			return `'\''`
		case c == '\n' || c == '\t' || !control:
			return single[c]
		}
		return fmt.Sprintf(`'"$(printf '\%03o')"'`, c)
	}
	switch {
	case c == '\'' || c == '\\':
		return `\` + single[c]
	case c == '\n':
		return `\n`
	case control || sh.dialect == ash && c >= 0x80:
		return fmt.Sprintf(`\%03o`, c)
	}
	return single[c]
}

// single holds each byte as a string.
var single = func() (s [256]string) {
	for i := range s {
		s[i] = string([]byte{byte(i)})
	}
	return s
}()
