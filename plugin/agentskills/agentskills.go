// Package agentskills is a plugin with commands by which models work on files: open, goto, scroll_down, scroll_up, search_dir, search_file, find_file,
// create, edit, insert and str_replace. What they show is bounded and numbered, an edit that would break a file's syntax is refused and shown why,
// and nothing in a file reaches the terminal that it would obey.
//
//	if err := box.InitPlugins(ctx, agentskills.Plugin()); err != nil {
//		return err
//	}
//	box.Execute(ctx, "open main.py 120") // the file stays open: in the next command, of this session
//
// A model that writes shell commands gets [Prompt] as part of its system prompt. One that calls tools gets [Tools]; [Command] makes of its call the
// command to Execute. Both tell what each command's --help tells: there is one text.
//
// # Which file is open
//
// The open file and its window belong to a session, as its directory does; sessions know nothing of each other. A shell that takes the place of
// one that ended has no file open. A Run, which has no terminal, keeps nothing: there, name the file.
//
// # What is safe
//
// An edit takes the file's place in one step, where that changes nothing but the contents; mode, owner, symbolic links, line ends (CRLF) and a missing last
// newline stay. Of two edits at once, none is lost: the later one is refused, and says so. An edit by line
// numbers is refused too when the open file has changed since the session was last shown it, and the file is shown as it is now. The syntax is checked with what is there
// (python3, bash, sh, gofmt, node, jq, ruby, php), by what runs nothing of the file. Where a file was broken before, an edit is not refused; nor is a new file.
//
// # What it needs
//
// A POSIX shell and what POSIX names beside it, as in busybox. Exit status: 0 for done, 1 for refused or not found, 2 for wrong usage.
// SANDSHELL_WINDOW is the height of the window, 100 lines unless it is set.
package agentskills

import (
	"embed"
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

// names are the commands, in the order in which they are explained.
var names = []string{
	"open", "goto", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file", "create", "edit", "insert", "str_replace",
}

const introduction = `You have these commands for working on files, beside all others of the shell. An argument in brackets may be left out. Quote arguments
that have spaces or other special characters. <<TEXT stands for a here-document: the command's line ends with <<'END', then come the lines, then a line END:

edit 3:4 <<'END'
    total = sum(prices)
    return total
END
`

// Prompt returns a text about the commands for the system prompt of a model that writes shell commands.
func Prompt() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, t := range Tools() {
		b.WriteString("\n" + t.Help)
	}
	return b.String()
}
