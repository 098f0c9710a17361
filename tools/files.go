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
// at the main session's directory. read shows text in UTF-8 and UTF-16, and shows pictures as a
// Reply's Images. edit keeps a file's line ends and encoding.
func Files(f sandbox.Files, c Config) *Set {
	c, err := c.check("Files: the Files value", f)
	if err != nil {
		return broken(err)
	}
	t := &files{files: f, config: c}
	return &Set{tools: []Tool{
		readOnly(must(newTool("read", readText, t.read, atLeast(1, "line", "lines")))),
		must(newTool("write", writeText, t.write)),
		must(newTool("edit", editText, t.edit)),
		readOnly(must(newTool("list", listText, t.list))),
		readOnly(must(newTool("find", findText, t.find))),
	}}
}

const (
	readText = "Reads a text file. Before each line come its number and a tab, which are not " +
		"part of the file. A picture (PNG, JPEG, GIF, WebP) is shown as a picture."
	writeText = "Writes a whole file: makes it, with the directories above it, or replaces all " +
		"that is in it."
	editText = "Replaces a text in a file by another. The old text has to be exactly as it is " +
		"in the file, with its indentation, and has to be there once: give enough lines around " +
		"it, or set all to replace it everywhere. The file keeps its line ends."
	listText = "Lists a directory: a line for each entry, with the size of a file, and a slash " +
		"after the name of a directory."
	findText = "Finds files by a pattern: * and ? stand for parts of a name, [ab] for one of " +
		"several characters, ** for any number of directories, as in src/**/*_test.go."
)

type files struct {
	files  sandbox.Files
	config Config
}

// withLimit bounds a call that could last for ever: a read of a device or a FIFO, a search in a
// tree without an end.
func (t *files) withLimit(ctx context.Context) (context.Context, func()) {
	return ctxerr.WithLimit(ctx, t.config.MaxWait,
		fmt.Errorf("not done after %v", t.config.MaxWait))
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
	return &Reply{Text: fmt.Sprintf("[wrote %s, %d bytes]\n", a.Path, len(a.Content))}, nil
}

type editArgs struct {
	Path string `json:"path" jsonschema:"the file"`
	Old  string `json:"old" jsonschema:"the text to replace"`
	New  string `json:"new" jsonschema:"the text to put in its place"`
	All  bool   `json:"all,omitempty" jsonschema:"replace it everywhere"`
}

func (t *files) edit(ctx context.Context, a editArgs) (*Reply, error) {
	switch {
	case a.Old == "":
		return nil, fmt.Errorf("the old text is empty: %s writes a new file",
			toolName(ctx, "write"))
	case unixEnds(a.Old) == unixEnds(a.New):
		return nil, errors.New("old and new are the same but for line ends, which the file " +
			"keeps: nothing was changed")
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
		return nil, notFound(a.Path, content, a.Old)
	case len(lines) > 1 && !a.All:
		return nil, fmt.Errorf("the old text is in %s at %d places, at the lines %s: give more "+
			"lines around the one that you mean, or set all to replace it everywhere",
			a.Path, len(lines), listNumbers(lines))
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
	return &Reply{Text: fmt.Sprintf("[replaced in %s at line %s]\n", a.Path, listNumbers(lines))},
		nil
}

// notFound returns the error for a text that is not in a file. It says so if only white space
// differs.
func notFound(path, content, old string) error {
	but := ""
	if strings.Contains(collapseSpace(content), collapseSpace(old)) {
		but = ", but one that differs only in white space is"
	}
	return fmt.Errorf(
		"the old text is not in %s%s: read the file, and copy the text as it is there", path, but)
}

// collapseSpace returns a text with one space in place of each run of white space.
func collapseSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// listNumbers lists the first ten numbers.
func listNumbers(all []int) string {
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
	return t.listLines(lines, "entries"), nil
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

// listLines returns a list within Config.MaxReply. It counts the lines that do not fit.
func (t *files) listLines(lines []string, of string) *Reply {
	if len(lines) == 0 {
		return &Reply{Text: "[no " + of + "]\n"}
	}
	text, room := "", t.config.MaxReply-noteRoom
	for i, line := range lines {
		if len(text)+len(line) >= room {
			return &Reply{Text: text + fmt.Sprintf("[%d more %s]\n", len(lines)-i, of)}
		}
		text += strings.ToValidUTF8(line, "\ufffd") + "\n"
	}
	return &Reply{Text: text}
}
