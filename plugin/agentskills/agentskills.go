// Package agentskills is a plugin with commands for models that work on files: open, goto,
// scroll_down, scroll_up, search_dir, search_file, find_file, create, edit, insert and str_replace.
// Their output is bounded, and lines are numbered. An edit that would break a file's syntax is
// refused, with the reason. Control characters in files are shown in a form that the terminal does
// not obey.
//
//	if err := box.InitPlugins(ctx, agentskills.Plugin()); err != nil {
//		return err
//	}
//	box.Execute(ctx, "open main.py 120") // the file stays open in this session
//
// [Prompt] explains the commands to a model that writes shell commands, as part of its system
// prompt. [Tools] describes them to a model that calls tools; [Command] turns its call into the
// command to Execute. Both have their text from the commands' --help.
//
// # Which file is open
//
// The open file and its window belong to a session, as its directory does; other sessions do not
// share them. A shell that replaces one that ended has no file open. A Run has no terminal and
// remembers no open file: name the file there.
//
// # What is safe
//
// An edit replaces the file in one step, where only the contents change by that; mode, owner,
// symbolic links, line ends (CRLF) and a missing last newline stay. Of two edits at the same time
// the later one is refused, and says so. An edit by line numbers is also refused if the open file
// has changed since the session last saw it; the file is shown as it is now. Syntax is checked with
// the tools that are there (python3, bash, sh, gofmt, node, jq, ruby, php), in ways that run no
// code of the file. An edit of a file that was broken before is not refused; nor is a new file.
//
// # What it needs
//
// The commands need a POSIX shell and the utilities of POSIX, as in busybox. Their exit status is 0
// for done, 1 for refused or not found, 2 for wrong usage. SANDSHELL_WINDOW sets the height of the
// window; the default is 100 lines.
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

// Plugin returns the plugin. Its name is agentskills.
func Plugin() plugin.Plugin {
	dir, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // not with this name
	}
	return plugin.Plugin{Name: "agentskills", Files: dir}
}

// ErrNotInstalled says that a box does not have the plugin.
var ErrNotInstalled = errors.New("the plugin agentskills is not installed: InitPlugins(ctx, " +
	"agentskills.Plugin()) first")

// names are the commands, in the order in which they are explained.
var names = []string{
	"open", "goto", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file", "create",
	"edit", "insert", "str_replace",
}

const introduction = `You have these commands for working on files, beside all others of the shell. An argument in brackets may be left out. Quote arguments
that have spaces or other special characters. <<TEXT stands for a here-document: the command's line ends with <<'END', then come the lines, then a line END:

edit 3:4 <<'END'
    total = sum(prices)
    return total
END
`

// Prompt returns a text about the commands for the system prompt of a model that writes shell
// commands.
func Prompt() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, t := range Tools() {
		b.WriteString("\n" + t.Help)
	}
	return b.String()
}
