package sshhost

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A command is what the server is asked to execute so that a program runs.
//
// SSH knows neither arguments, nor directories, nor process ids: it hands one string to the user's
// login shell, whichever that is. The string makes the login shell execute a POSIX shell in its
// place. The POSIX shell goes to the directory, finds the program, prints its own process id behind
// a mark that nobody can guess, and executes the program in its place. All of this is one process.
// Whatever a startup file of the login shell prints comes before the mark and is dropped.
type command struct {
	line string // for the login shell
	// the first line of the program's standard input, which the shell reads; "" is none
	input string
}

// maxLine is the longest string for the login shell, which gets the string as one argument. Linux
// takes at most 128 KiB in one argument (MAX_ARG_STRLEN). A longer string goes over the standard
// input.
const maxLine = 100 << 10

// nameMax is the longest path that a system with an sshd takes: Linux's PATH_MAX, which counts the
// NUL behind it.
const nameMax = 4096

// Answers of the script, in place of a process id.
const (
	noDirectory        = "dir-none"
	noPermission       = "dir-perm"
	notADirectory      = "dir-file"
	noProgram          = "prog-none"
	notExecutable      = "prog-perm"
	programIsDirectory = "prog-dir"
	noTerminal         = "no-tty"
	noFIFODirectory    = "no-place" // and why
	noFIFO             = "no-fifo"
	otherUser          = "user"
)

// makeCommand makes the command for p, with mark (letters and digits) to tell its output by.
func makeCommand(p shellbox.Program, env []string, mark string) (command, error) {
	if len(p.Args) == 0 || p.Args[0] == "" {
		return command{}, fmt.Errorf("start a program: no name given: %w", syscall.EINVAL)
	}
	for _, list := range [][]string{p.Args, env, {p.Dir, p.User}} {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return command{}, fmt.Errorf("start %q: a NUL byte in %.60q: %w", p.Args[0], s,
					syscall.EINVAL)
			}
		}
	}
	for _, name := range []struct{ op, path string }{{"chdir", p.Dir}, {"exec", p.Args[0]}} {
		if len(name.path) >= nameMax { // the script would look at each of its parents
			return command{}, &fs.PathError{Op: name.op, Path: name.path, Err: syscall.ENAMETOOLONG}
		}
	}
	script := makeScript(p, env, mark)
	if strings.Contains(script, newline) {
		script = setNewline + script
	}
	if line := "exec /bin/sh -c " + quoteForAnyShell(script); len(line) <= maxLine {
		return command{line: line}, nil
	}
	if p.Terminal != nil {
		// A terminal cuts lines at 4,096 bytes, and shows them.
		return command{}, fmt.Errorf("start %q on a terminal: arguments and environment of more "+
			"than %d bytes: %w",
			p.Args[0], maxLine, syscall.E2BIG)
	}
	// The shell's read takes single bytes from a stream that cannot seek, so the program's input
	// stays untouched.
	return command{
		line:  "exec /bin/sh -c " + quoteForAnyShell(`IFS= read -r __s && eval "$__s"`),
		input: script + "\n",
	}, nil
}

// To csh a string ends with the line, and so does the line to a shell that reads one: a newline in
// a quoted string of the script is a variable, which gets its value from IFS, the third of whose
// characters it is (the fourth, which zsh has, goes).
const (
	newline    = `'"$__n"'`
	setNewline = `__n=${IFS#??}; __n=${__n%"${__n#?}"}; `
)

// makeScript makes the script, of one line. It uses only builtins and leaves no variable behind.
func makeScript(p shellbox.Program, env []string, mark string) string {
	quote := func(s string) string { return strings.ReplaceAll(shellquote.Quote(s), "\n", newline) }
	var b strings.Builder
	// If nobody reads any more, printf fails or SIGPIPE kills the shell, and the program is not
	// started.
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
		b.WriteString(strings.ReplaceAll(makeFIFO, "MARK", mark))
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
	// The lookup that execvp does. command -v would find builtins too, and fork.
	b.WriteString(`; __at=; case $1 in ` +
		`*/*) [ -d "$1" ] && __no ` + programIsDirectory + `; [ -e "$1" ] || __no ` + noProgram +
		`; [ -x "$1" ] || __no ` + notExecutable + `;; ` +
		`*) set -f; IFS=:; for __d in $PATH; do [ -f "${__d:-.}/$1" ] || continue; __at=1; [ -x "${__d:-.}/$1" ] && { __at=2; break; }; done; ` +
		`case $__at in "") __no ` + noProgram + `;; 1) __no ` + notExecutable +
		`;; esac;; esac; unset __at __d; `)
	if p.Terminal == nil {
		fmt.Fprintf(&b, `printf "\036%s\n" >&2; `, mark)
	}
	b.WriteString(`__say "$$"; `)
	b.WriteString(execute(&p, odd, quote))
	return b.String()
}

// changeDirectory goes to the directory. Each shell's cd has its own words for why it failed: so look for
// the first parent that is there.
func changeDirectory(dir string, quote func(string) string) string {
	word := quote(dir)
	if dir[0] != '/' {
		word = `"${PWD%/}"/` + word // PWD is the login's home
	}
	return "set -- " + word + `; unset CDPATH; cd -- "$1" >/dev/null 2>&1 || { ` +
		`[ -d "$1" ] && __no ` + noPermission + `; [ -e "$1" ] && __no ` + notADirectory + `; ` +
		`while [ -n "$1" ] && ! [ -e "$1" ]; do set -- "${1%/*}"; done; [ -d "${1:-/}" ] && ! [ -x "${1:-/}" ] && __no ` + noPermission + `; ` +
		`[ -e "$1" ] && ! [ -d "$1" ] && __no ` + notADirectory + `; __no ` + noDirectory +
		`; }; unset OLDPWD; `
}

// execute puts the program in the shell's place, with the variables that env has to set.
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

// quoteForAnyShell quotes s, which has no newline, for sh, bash, zsh, ksh, fish, csh and tcsh. In
// fish a backslash before a backslash or a quote is special inside single quotes, and in csh an
// exclamation mark is: all three stand outside.
var anyShell = strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`, `!`, `'\!'`)

func quoteForAnyShell(s string) string { return "'" + anyShell.Replace(s) + "'" }

// isLogin returns the part of the script that goes on only if user, a name, a number or two, is the
// login's own.
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

// lastOf returns the last value of a variable in env, "" if it has none.
func lastOf(name string, env []string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// settable reports whether a shell can export a variable of that name: it is a name, and not one
// that some shell keeps to itself (bash refuses UID, which images do set, and leaves a script for
// it), nor one of ours.
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
