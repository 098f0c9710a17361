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
// shell, whichever that is. The string makes the login shell execute a POSIX shell in its place.
// The POSIX shell goes to the directory, finds the program, prints its own process id after a mark
// that nobody can guess, and executes the program in its place. All of this is one process. What a
// startup file of the login shell prints comes before the mark and is dropped.
type command struct {
	line string // for the login shell
	// input is the first line of the standard input, which the shell reads; "" if there is none.
	input string
}

// maxLine is the greatest length of the string for the login shell, which gets it as one argument.
// Linux takes at most 128 KiB in one argument (MAX_ARG_STRLEN). A longer string goes over the
// standard input.
const maxLine = 100 << 10

// nameMax is the greatest length of a path: Linux's PATH_MAX, which includes the NUL at its end.
// Other systems with an sshd take no longer paths.
const nameMax = 4096

// The script answers with one of these in place of a process id.
const (
	noDirectory        = "dir-none"
	noPermission       = "dir-perm"
	notADirectory      = "dir-file"
	noProgram          = "prog-none"
	notExecutable      = "prog-perm"
	programIsDirectory = "prog-dir"
	noTerminal         = "no-tty"
	noFIFODirectory    = "no-place" // followed by the reason
	noFIFO             = "no-fifo"
	otherUser          = "user"
)

// makeCommand makes the command for p. mark, of letters and digits, marks the script's output.
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
		if len(name.path) >= nameMax { // the script would check each of its parents
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
	// From a stream that cannot seek, the shell's read takes single bytes. So it takes nothing of
	// the program's input.
	return command{
		line:  "exec /bin/sh -c " + quoteForAnyShell(`IFS= read -r __s && eval "$__s"`),
		input: script + "\n",
	}, nil
}

// For csh a quoted string ends with the line, and for a shell that reads a line, so does the
// command. So in the script a newline in a quoted string is a variable. The variable gets its value
// from IFS, whose third character is a newline (zsh's IFS has a fourth character, which is
// removed).
const (
	newline    = `'"$__n"'`
	setNewline = `__n=${IFS#??}; __n=${__n%"${__n#?}"}; `
)

// makeScript makes the script, which is one line. It uses only builtins and leaves no variable
// behind.
func makeScript(p shellbox.Program, env []string, mark string) string {
	quote := func(s string) string { return strings.ReplaceAll(shellquote.Quote(s), "\n", newline) }
	var b strings.Builder
	// If nobody reads the output, printf fails or SIGPIPE kills the shell, and the program is not
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

// changeDirectory goes to the directory. If it cannot, the reason comes from the first parent that
// exists, because each shell's cd words its error differently.
func changeDirectory(dir string, quote func(string) string) string {
	word := quote(dir)
	if dir[0] != '/' {
		word = `"${PWD%/}"/` + word // PWD is the login's home
	}
	return "set -- " + word + `; unset CDPATH; cd -- "$1" >/dev/null 2>&1 || { ` +
		`[ -d "$1" ] && __no ` + noPermission + `; [ -e "$1" ] && __no ` + notADirectory + `; ` +
		`while [ -n "$1" ] && ! [ -e "$1" ]; do set -- "${1%/*}"; done; ` +
		`[ -d "${1:-/}" ] && ! [ -x "${1:-/}" ] && __no ` + noPermission + `; ` +
		`[ -e "$1" ] && ! [ -d "$1" ] && __no ` + notADirectory + `; __no ` + noDirectory +
		`; }; unset OLDPWD; `
}

// execute executes the program in the shell's place, with the variables that env(1) has to set.
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

// quoteForAnyShell quotes s, which has no newline, for sh, bash, zsh, ksh, fish, csh and tcsh.
// Inside single quotes, a backslash before a backslash or a quote is special in fish, and an
// exclamation mark is special in csh. All three stand outside the quotes.
var anyShell = strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`, `!`, `'\!'`)

func quoteForAnyShell(s string) string { return "'" + anyShell.Replace(s) + "'" }

// isLogin returns a part of the script that goes on only if user is the login's own. user is a name
// or a number, with a group's number after a colon if there is one.
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

// settable reports whether every shell can export a variable of that name. It cannot if the name is
// not an identifier, or if some shell reserves it (bash refuses UID, which images do set, and
// aborts the script). Names that the script uses are not settable either.
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
