package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// Files returns the tools of a box's files: read, write, edit, list and find. Relative paths start
// at the main session's directory. read shows text in UTF-8 and UTF-16, and pictures as a Reply's
// Images; edit keeps a file's line ends and encoding.
func Files(f sandbox.Files, opts ...Option) *Set {
	if isNil(f) {
		return broken("Files: the files are nil")
	}
	t := &files{files: f, options: newOptions(opts)}
	return &Set{tools: []Tool{
		readOnly(must(newTool("read", readText, t.read, atLeast(1, "line", "lines")))),
		must(newTool("write", writeText, t.write)),
		must(newTool("edit", editText, t.edit)),
		readOnly(must(newTool("list", listText, t.list))),
		readOnly(must(newTool("find", findText, t.find))),
	}}
}

const (
	readText  = `Reads a text file. Each line is shown with its number and a tab before it, which are not part of the file. A picture (PNG, JPEG, GIF, WebP) is shown as such.`
	writeText = `Writes a file as a whole: a new one, with the directories above it, or in place of what is there.`
	editText  = `Replaces a text in a file by another. The old text has to be in the file exactly, with its indentation, and once: with enough lines around it to tell it from others; or all says that every place is meant. The file keeps its line ends.`
	listText  = `Lists a directory: a line for each entry, with the size of a file, and a slash behind the name of a directory.`
	findText  = `Finds files by a pattern: * and ? are parts of a name, [ab] is one of several characters, ** is any number of directories, as in src/**/*_test.go.`
)

type files struct {
	files   sandbox.Files
	options options
}

// bounded bounds a call that can last for ever: on a device, a FIFO, a tree without an end.
func (t *files) bounded(ctx context.Context) (context.Context, func()) {
	return ctxerr.WithLimit(ctx, t.options.yield, fmt.Errorf("not done after %v", t.options.yield))
}

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file"`
	Content string `json:"content" jsonschema:"the file's new content"`
}

func (t *files) write(ctx context.Context, a writeArgs) (*Reply, error) {
	if err := t.files.WriteFile(ctx, a.Path, []byte(a.Content), 0o644,
		sandbox.Parents()); err != nil {
		return nil, err
	}
	return &Reply{Text: fmt.Sprintf("[%s has %d bytes now]\n", a.Path, len(a.Content))}, nil
}

type editArgs struct {
	Path string `json:"path" jsonschema:"the file"`
	Old  string `json:"old" jsonschema:"the text to replace"`
	New  string `json:"new" jsonschema:"the text to put in its place"`
	All  bool   `json:"all,omitempty" jsonschema:"replace it wherever it is"`
}

func (t *files) edit(ctx context.Context, a editArgs) (*Reply, error) {
	switch {
	case a.Old == "":
		return nil, fmt.Errorf("the old text is empty: %s writes a new file", named(ctx, "write"))
	case unixEnds(a.Old) == unixEnds(a.New):
		return nil, errors.New("the new text is the old one: nothing would change, since the " +
			"file keeps its line ends")
	}
	data, err := t.files.ReadFile(ctx, a.Path, 0)
	if err != nil {
		return nil, err
	}
	content, encode, err := decode(a.Path, data)
	if err != nil {
		return nil, err
	}
	changed, lines := replaceText(content, a.Old, a.New)
	switch {
	case len(lines) == 0:
		return nil, absent(a.Path, content, a.Old)
	case len(lines) > 1 && !a.All:
		return nil, fmt.Errorf("the old text is in %s at %d places, from the lines %s on: give "+
			"more lines around the one that is meant, or say all",
			a.Path, len(lines), someNumbers(lines))
	}
	if data, err = encode(changed); err != nil {
		return nil, err
	}
	info, err := t.files.Stat(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	if err := t.files.WriteFile(ctx, a.Path, data, info.Mode().Perm()); err != nil {
		return nil, err
	}
	return &Reply{Text: fmt.Sprintf("[replaced in %s at line %s]\n", a.Path, someNumbers(lines))},
		nil
}

// absent says why a text is not in a file, as far as that can be seen.
func absent(path, content, old string) error {
	but := ""
	if strings.Contains(spaced(content), spaced(old)) {
		but = ", but one that differs from it in white space only"
	}
	return fmt.Errorf(
		"the old text is not in %s%s: read the file, and copy the text as it is there", path, but)
}

// spaced is a text with one space for all white space.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// someNumbers lists numbers, a few of them.
func someNumbers(all []int) string {
	const most = 10
	text := ""
	for i, n := range all[:min(len(all), most)] {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(n)
	}
	if len(all) > most {
		text += ", …"
	}
	return text
}

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"the directory. Default: the shell's"`
}

func (t *files) list(ctx context.Context, a listArgs) (*Reply, error) {
	if a.Path == "" {
		a.Path = "."
	}
	entries, err := t.files.ReadDir(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = entryText(e)
	}
	return t.lines(lines, "entries"), nil
}

func entryText(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	if e.Type()&fs.ModeSymlink != 0 {
		return e.Name() + " (a symbolic link)"
	}
	if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
		return fmt.Sprintf("%s %d", e.Name(), info.Size())
	}
	return e.Name()
}

// lines is a list within the budget. What of it is too long is counted.
func (t *files) lines(lines []string, of string) *Reply {
	if len(lines) == 0 {
		return &Reply{Text: "[no " + of + "]\n"}
	}
	text, room := "", t.options.budget-noteRoom
	for i, line := range lines {
		if len(text)+len(line) >= room {
			return &Reply{Text: text + fmt.Sprintf("[%d more %s]\n", len(lines)-i, of)}
		}
		text += strings.ToValidUTF8(line, "\ufffd") + "\n"
	}
	return &Reply{Text: text}
}
