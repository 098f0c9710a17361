package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// Files returns the tools of a box's files:
//
//	read(path, line?, lines?)
//	write(path, content)
//	edit(path, old, new, all?)
//	list(path?)
//	find(pattern, dir?, ignored?)
//	search(pattern, path?, files?, context?, ignored?)
//
// Relative paths start at the main session's directory. read shows text in UTF-8 and UTF-16, and
// returns a picture as the Reply's Images. edit keeps a file's line ends and encoding. find and
// search leave out what .gitignore files name, and .git. search reads the files one by one, so it
// needs no program in the box.
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
		readOnly(must(newTool("find", findText, t.find, describe("ignored", ignoredText)))),
		readOnly(must(newTool("search", searchText, t.search, atLeast(0, "context"),
			atMost(maxContext, "context"), describe("pattern", searchPattern),
			describe("path", searchPath),
			describe("files", searchFiles), describe("context", searchContext),
			describe("ignored", ignoredText)))),
	}}
}

const (
	readText = "Reads a text file. Each line begins with its number and a tab, which are not " +
		"part of the file. A picture (PNG, JPEG, GIF, WebP) is shown as a picture."
	writeText = "Writes a whole file. If the file exists, its content is replaced. Otherwise " +
		"the file is made, and so are missing directories above it. A new file that begins " +
		"with #! is made executable."
	editText = "Replaces a text in a file by another. Give the old text exactly as it is in " +
		"the file, with its indentation, and with enough lines around it that the file has it " +
		"only once. Or set all to replace it everywhere. The file keeps its line ends."
	listText = "Lists a directory. Each entry is a line: a file with its size, a directory with " +
		"a slash."
	findText = "Finds files by a pattern: * and ? stand for parts of a name, [ab] for one of " +
		"several characters, {a,b} for a or b, ** for any number of directories, as in " +
		"src/**/*_test.go. What " +
		".gitignore files name is left out, and .git."
	searchText = "Searches the lines of files for a regular expression, as grep -rn does. The " +
		"reply has the path of each file, and below it the numbers and texts of the lines that " +
		"match. What .gitignore files name is left out, and .git; of a binary file only its " +
		"name is shown."

	ignoredText   = "whether to look at what .gitignore files name, and into .git, too"
	searchPattern = "a regular expression in RE2's syntax; (?i) at its beginning ignores case"
	searchPath    = "the file or directory to search. Default: the shell's directory"
	searchFiles   = "which files to search, as a pattern for `find`, such as *.go or " +
		"src/**/*.ts. A pattern without a slash fits in any directory. Default: all"
	searchContext = "how many lines to show before and after each match. Default: 0"
)

type files struct {
	files  sandbox.Files
	config Config
}

// withLimit returns a context for a call that could last for ever, such as a read of a device. It
// ends after Config.MaxWait with an error that ends in advice.
func (t *files) withLimit(ctx context.Context, advice string) (context.Context, func()) {
	return ctxerr.WithLimit(ctx, t.config.MaxWait,
		fmt.Errorf("not done after %v: %s", t.config.MaxWait, advice))
}

// errNoPath is the error for a file whose path is empty. A box takes "" for a directory.
var errNoPath = errors.New(`the argument "path" is empty: give a file`)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file"`
	Content string `json:"content" jsonschema:"the file's new content"`
}

func (t *files) write(ctx context.Context, a writeArgs) (*Reply, error) {
	if a.Path == "" {
		return nil, errNoPath
	}
	perm, what := fs.FileMode(0o644), ""
	if strings.HasPrefix(a.Content, "#!") { // a script, which the model is going to run
		perm = 0o755
	}
	if err := t.files.WriteFile(ctx, a.Path, []byte(a.Content), perm,
		sandbox.Parents()); err != nil {
		return nil, err
	}
	if perm == 0o755 {
		info, err := t.files.Stat(ctx, a.Path)
		if err != nil {
			return nil, err
		}
		if what = ", executable"; info.Mode()&0o100 == 0 {
			what = ", not executable: it keeps its permissions, which chmod +x changes"
		}
	}
	return &Reply{Text: fmt.Sprintf("[wrote %s, %d bytes%s]\n", a.Path, len(a.Content), what)},
		nil
}

type editArgs struct {
	Path string `json:"path" jsonschema:"the file"`
	Old  string `json:"old" jsonschema:"the text to replace"`
	New  string `json:"new" jsonschema:"the text that takes its place"`
	All  bool   `json:"all,omitempty" jsonschema:"whether to replace it everywhere"`
}

func (t *files) edit(ctx context.Context, a editArgs) (*Reply, error) {
	switch {
	case a.Path == "":
		return nil, errNoPath
	case a.Old == "":
		return nil, fmt.Errorf("the old text is empty: give the text to replace, or use %s to "+
			"write a new file", toolName(ctx, "write"))
	case unixEnds(a.Old) == unixEnds(a.New):
		return nil, errors.New("nothing was changed: old and new differ at most in line ends, " +
			"which the file keeps")
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
		return nil, fmt.Errorf("the old text is in %s %d times, at the lines %s: give more "+
			"lines around the place that you mean, or set all to replace it everywhere",
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
	if len(lines) > 1 {
		return &Reply{Text: fmt.Sprintf("[replaced %d times in %s, at the lines %s]\n", len(lines),
			a.Path, listNumbers(lines))}, nil
	}
	return &Reply{Text: fmt.Sprintf("[replaced in %s at line %d]\n", a.Path, lines[0])}, nil
}

// notFound returns the error for a text that is not in a file. If the file has a text that differs
// only in white space, the error says so.
func notFound(path, content, old string) error {
	if strings.Contains(old, "\ufffd") && !strings.Contains(content, "\ufffd") {
		return fmt.Errorf("the old text is not in %s: a \ufffd stands for bytes of the file that "+
			"are no UTF-8: give old without it, or change the file with a program", path)
	}
	similar := ""
	if strings.Contains(collapseSpace(content), collapseSpace(old)) {
		similar = ", but a text that differs only in white space is"
	}
	return fmt.Errorf("the old text is not in %s%s: read the file, and copy the text as it is "+
		"there", path, similar)
}

// collapseSpace returns a text with one space for each run of white space.
func collapseSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// listNumbers returns the first ten numbers as a list.
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
	more := fmt.Sprintf("entries: use %s with a pattern", toolName(ctx, "find"))
	return t.listLines(lines, "[no entries]\n", more), nil
}

func entryText(e fs.DirEntry) string {
	name := shownName(e.Name())
	switch e.Type() {
	case fs.ModeDir:
		return name + "/"
	case fs.ModeSymlink:
		return name + " (a symbolic link)"
	case 0:
		if info, err := e.Info(); err == nil {
			return fmt.Sprintf("%s %d", name, info.Size())
		}
		return name
	}
	return name + " (no regular file)"
}

// listLines returns a list of at most Config.MaxReply bytes. If there are no lines, it returns
// none. If not all lines fit, a note counts the others, and ends in more.
func (t *files) listLines(lines []string, none, more string) *Reply {
	if len(lines) == 0 {
		return &Reply{Text: none}
	}
	var text strings.Builder
	room := t.config.MaxReply - noteRoom
	for i, line := range lines {
		if text.Len()+len(line) >= room {
			fmt.Fprintf(&text, "[%d more %s]\n", len(lines)-i, more)
			break
		}
		text.WriteString(line + "\n")
	}
	return &Reply{Text: text.String()}
}

// shownName returns a file's name as it is shown. A name can hold any byte but a slash and a zero
// byte, so what is no text is quoted as in Go: a line end would look like the end of the name.
func shownName(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
