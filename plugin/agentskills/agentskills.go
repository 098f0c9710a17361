// Package agentskills is a plugin with commands for models that work on files: open, goto,
// scroll_down, scroll_up, search_dir, search_file, find_file, create, edit, insert and str_replace.
// Their output is bounded and has line numbers. An edit that would break a file's syntax is
// refused, with the reason. Control characters in files are shown in a form that the terminal does
// not obey.
//
//	if err := box.InitPlugins(ctx, agentskills.Plugin()); err != nil {
//		return err
//	}
//	box.Execute(ctx, "open main.py 120") // the file stays open in this session
//
// [Prompt] returns a part of a system prompt, for a model that writes shell commands. [Tools]
// returns descriptions for a model that calls tools; [Command] turns a call of such a tool into the
// command to Execute. Both are made from the --help of the commands.
//
// # Which file is open
//
// The open file and its window belong to a session, as its directory does. Other sessions do not
// have them. A shell that replaces one that has ended has no file open. A Run has no terminal and
// keeps no open file, so its commands must name the file.
//
// # What is safe
//
// An edit replaces the file in one step, by a rename, unless a rename would change more than the
// contents. Mode, owner, symbolic links, line ends (CRLF) and a missing last newline stay. Of two
// edits at the same time, the later one is refused with that reason. An edit by line numbers is
// also refused if the open file has changed since the session last saw it; the command then shows
// the current file. Syntax is checked with the checkers that the box has (python3, bash, sh, gofmt,
// node, jq, ruby, php), in ways that run no code of the file. An edit of a file that has a syntax
// error already is not refused; nor is a new file.
//
// # What it needs
//
// The commands need a POSIX shell and the utilities of POSIX, such as those of busybox. Their exit
// status is 0 for done, 1 for refused or not found, and 2 for wrong usage. The variable
// SANDSHELL_WINDOW sets the height of the window; the default is 100 lines.
package agentskills

import (
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed all:files
var files embed.FS

// Plugin returns the plugin, whose name is agentskills.
func Plugin() plugin.Plugin {
	dir, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // "files" is a valid path
	}
	return plugin.Plugin{Name: "agentskills", Files: dir}
}

// ErrNotInstalled is the error of a box that lacks the plugin.
var ErrNotInstalled = errors.New("the plugin agentskills is not installed: InitPlugins(ctx, " +
	"agentskills.Plugin()) first")

// names are the commands, in the order in which Prompt explains them.
var names = []string{
	"open", "goto", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file", "create",
	"edit", "insert", "str_replace",
}

const introduction = `You have these commands for working on files, beside all others of the shell.
An argument in brackets is optional. Quote arguments that have spaces or other special characters.
<<TEXT stands for a here-document: the command's line ends with <<'END', then come the lines of TEXT, then a line END:

edit 3:4 <<'END'
    total = sum(prices)
    return total
END
`

// Prompt returns a text about the commands, for the system prompt of a model that writes shell
// commands.
func Prompt() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, t := range Tools() {
		b.WriteString("\n" + t.Help)
	}
	return b.String()
}
