package sshhost

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A command is what the server is asked to execute to start a program.
//
// SSH knows no arguments, directories or process ids: it passes one string to the user's login
// shell, which may be any shell. The string makes the login shell execute a POSIX shell in its
// place. The POSIX shell goes to the directory, finds the program, prints its own process id after
// a random mark, and executes the program in its place. All of this is one process. The output of
// the login shell's startup files comes before the mark and is dropped.
type command struct {
	line string // for the login shell
	// input is the line of the standard input that the POSIX shell reads first. It may be "".
	input string
	fifo  string // the FIFO of commands, if the script knows its name
}

// maxLine is the greatest length of the string for the login shell. The login shell gets it as one
// argument, and Linux takes at most 128 KiB in one argument (MAX_ARG_STRLEN). A longer script goes
// over the standard input.
const maxLine = 100 << 10

// nameMax is Linux's PATH_MAX, which includes the NUL at a path's end. Other systems with an sshd
// do not take longer paths.
const nameMax = 4096

// If the script fails, it prints one of these in place of the process id.
const (
	noDirectory        = "dir-none"
	noPermission       = "dir-perm"
	notADirectory      = "dir-file"
	noProgram          = "prog-none"
	notExecutable      = "prog-perm"
	programIsDirectory = "prog-dir"
	noTerminal         = "no-tty"
	lostFIFO           = "no-fifo"
	otherUser          = "user"
)

// wantFIFO is what the script prints if it waits for the name of a FIFO.
const wantFIFO = "fifo"

// A feeder prints one of these.
const (
	hasFIFO = "fifo"    // followed by its name
	noFIFO  = "no-fifo" // followed by the reason
)

// checkProgram returns why no command can be made for p.
func checkProgram(p shellbox.Program, env []string) error {
	if len(p.Args) == 0 || p.Args[0] == "" {
		return fmt.Errorf("start a program: its name is empty: %w", syscall.EINVAL)
	}
	for _, list := range [][]string{p.Args, env, {p.Dir, p.User}} {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return fmt.Errorf("start %q: a NUL byte in %.60q: %w", p.Args[0], s,
					syscall.EINVAL)
			}
		}
	}
	for _, name := range []struct{ op, path string }{{"chdir", p.Dir}, {"exec", p.Args[0]}} {
		if len(name.path) >= nameMax { // the script would check each of its parents
			return &fs.PathError{Op: name.op, Path: name.path, Err: syscall.ENAMETOOLONG}
		}
	}
	return nil
}

// makeCommand makes the command for p, which checkProgram has checked. mark marks the script's
// output. It consists of letters and digits. fifo is the name of the FIFO of commands, if it is
// known.
func makeCommand(p shellbox.Program, env []string, mark, fifo string) (command, error) {
	script := makeScript(p, env, mark, fifo)
	if strings.Contains(script, newline) {
		script = setNewline + script
	}
	if line := "exec /bin/sh -c " + quoteForAnyShell(script); len(line) <= maxLine {
		return command{line: line, fifo: fifo}, nil
	}
	if p.Terminal != nil {
		// The standard input does not do: a terminal cuts lines at 4,096 bytes, and echoes them.
		return command{}, fmt.Errorf("start %q on a terminal: arguments and environment of more "+
			"than %d bytes: %w",
			p.Args[0], maxLine, syscall.E2BIG)
	}
	// The shell's read takes single bytes from a stream that cannot seek. So it takes nothing of
	// the program's input.
	return command{
		line:  "exec /bin/sh -c " + quoteForAnyShell(`IFS= read -r __s && eval "$__s"`),
		input: script + "\n",
	}, nil
}

// The script is one line, because in csh a quoted string cannot contain a newline, and because read
// takes one line. So a newline in a quoted string becomes a variable. The variable gets its value
// from IFS, whose third character is a newline. (zsh's IFS has a fourth character, which is
// removed.)
const (
	newline    = `'"$__n"'`
	setNewline = `__n=${IFS#??}; __n=${__n%"${__n#?}"}; `
)

// makeScript makes the script, which is one line. It uses only builtins and leaves no variable
// behind.
func makeScript(p shellbox.Program, env []string, mark, fifo string) string {
	quote := func(s string) string { return strings.ReplaceAll(shellquote.Quote(s), "\n", newline) }
	var b strings.Builder
	// If the output is closed, printf fails or SIGPIPE kills the shell, and the program does not
	// start.
	fmt.Fprintf(&b,
		`__say() { printf "\036%s %%s\n" "$1" || exit 1; }; __no() { __say "$1"; exit 126; }; `,
		mark)
	if p.User != "" {
		b.WriteString(isLogin(p.User, quote))
	}
	if p.Terminal != nil {
		b.WriteString(`[ -t 0 ] || __no ` + noTerminal + `; `)
	}
	if p.Terminal != nil && p.Terminal.Commands {
		b.WriteString(openFIFO(fifo, quote))
	}
	var odd []string // variables that a shell cannot set; env(1) can
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if p.ReplaceEnv || !settable(name) {
			if name != "" {
				odd = append(odd, kv)
			}
			continue
		}
		b.WriteString("export " + name + "=" + quote(value) + "; ")
	}
	if p.Dir != "" {
		b.WriteString(changeDirectory(p.Dir, quote))
	}
	if p.ReplaceEnv {
		b.WriteString(`__env=$(command -v env); PATH=` + quote(lastOf("PATH", env)) + `; `)
	}
	b.WriteString("set --")
	for _, arg := range p.Args {
		b.WriteString(" " + quote(arg))
	}
	// This looks the program up as execvp does. command -v would also find builtins, and fork.
	b.WriteString(`; __at=; case $1 in ` +
		`*/*) [ -d "$1" ] && __no ` + programIsDirectory + `; [ -e "$1" ] || __no ` + noProgram +
		`; [ -x "$1" ] || __no ` + notExecutable + `;; ` +
		`*) set -f; IFS=:; for __d in $PATH; do ` +
		`[ -f "${__d:-.}/$1" ] || continue; __at=1; ` +
		`[ -x "${__d:-.}/$1" ] && { __at=2; break; }; done; ` +
		`case $__at in "") __no ` + noProgram + `;; 1) __no ` + notExecutable +
		`;; esac;; esac; unset __at __d; `)
	if p.Terminal == nil {
		fmt.Fprintf(&b, `printf "\036%s\n" >&2; `, mark)
	}
	b.WriteString(`__say "$$"; `)
	b.WriteString(execute(&p, odd, quote))
	return b.String()
}

// changeDirectory returns the part of the script that goes to the directory. If cd fails, the
// script finds the reason at the nearest parent that exists, because each shell's cd words its
// error differently.
func changeDirectory(dir string, quote func(string) string) string {
	word := quote(dir)
	if dir[0] != '/' {
		word = `"${PWD%/}"/` + word // PWD is the user's home directory
	}
	return "set -- " + word + `; unset CDPATH; cd -- "$1" >/dev/null 2>&1 || { ` +
		`[ -d "$1" ] && __no ` + noPermission + `; [ -e "$1" ] && __no ` + notADirectory + `; ` +
		`while [ -n "$1" ] && ! [ -e "$1" ]; do set -- "${1%/*}"; done; ` +
		`[ -d "${1:-/}" ] && ! [ -x "${1:-/}" ] && __no ` + noPermission + `; ` +
		`[ -e "$1" ] && ! [ -d "$1" ] && __no ` + notADirectory + `; __no ` + noDirectory +
		`; }; unset OLDPWD; `
}

// execute returns the part of the script that executes the program in the shell's place. env has
// the variables that env(1) has to set.
func execute(p *shellbox.Program, env []string, quote func(string) string) string {
	var b strings.Builder
	switch {
	case p.ReplaceEnv:
		b.WriteString(`exec "$__env" -i --`)
	case len(env) > 0:
		b.WriteString("exec env --")
	default:
		b.WriteString("exec")
	}
	for _, kv := range env {
		b.WriteString(" " + quote(kv))
	}
	b.WriteString(` "$@"`)
	if p.Terminal == nil && p.Joined {
		b.WriteString(` 2>&1`)
	}
	if p.Terminal != nil && p.Terminal.Commands {
		b.WriteString(` <&4 4<&-`)
	}
	return b.String()
}

// anyShell replaces what single quotes cannot contain in every shell. In fish, a backslash before a
// backslash or a quote is special. In csh, an exclamation mark is. All three go outside the quotes.
var anyShell = strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`, `!`, `'\!'`)

// quoteForAnyShell quotes s for sh, bash, zsh, ksh, fish, csh and tcsh. s has no newline.
func quoteForAnyShell(s string) string { return "'" + anyShell.Replace(s) + "'" }

// isLogin returns the part of the script that checks that the script runs as user. user is a name
// or a number. A colon and a group's number may follow.
func isLogin(user string, quote func(string) string) string {
	name, gid, grouped := strings.Cut(user, ":")
	check := `[ "$(id -un 2>/dev/null)" = ` + quote(name) + ` ]`
	if name != "" && strings.Trim(name, "0123456789") == "" {
		check = `[ "$(id -u)" = ` + quote(name) + ` ]`
	}
	if grouped {
		check += ` && [ "$(id -g)" = ` + quote(gid) + ` ]`
	}
	return `{ ` + check + `; } || __no ` + otherUser + `; `
}

// lastOf returns the last value of a variable in env; "" if it has none.
func lastOf(name string, env []string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// settable reports whether the script can export a variable of that name in every shell. It cannot
// if the name is not an identifier, if a shell reserves it, or if the script itself uses it. For
// example, images set UID, but bash refuses it and aborts the script.
func settable(name string) bool {
	switch name {
	case "", "_", "UID", "EUID", "GID", "PPID", "GROUPS", "IFS", "OPTIND", "OPTARG", "LINENO",
		"RANDOM", "SRANDOM", "SECONDS",
		"SHELLOPTS", "DIRSTACK", "FUNCNAME", "FUNCNEST", "PIPESTATUS", "HISTCMD", "EPOCHSECONDS",
		"EPOCHREALTIME", "CDPATH":
		return false
	}
	if strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "__") {
		return false
	}
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return true
}
