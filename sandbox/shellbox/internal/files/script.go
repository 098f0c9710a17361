package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/errnos"
	"github.com/sandshell/sandshell/sandbox"
)

// copierError returns why a Copier failed.
func (f *Files) copierError(ctx context.Context, err error) error {
	var typed *fs.PathError
	if ctx.Err() == nil && !errors.As(err, &typed) {
		return f.box.Lost(err)
	}
	return ctxerr.Explain(ctx, err)
}

// runScript runs the box's end of a copy, within a call. It returns the script's exit status and
// what its tools printed on standard error. args[0] is the path.
func (f *Files) runScript(ctx context.Context, script string, args []string, stdin io.Reader,
	stdout io.Writer) (status int, said *toolOutput, err error) {
	said = &toolOutput{}
	cmd := &sandbox.Cmd{
		Args:  append([]string{"sh", "-c", script, "sh"}, args...),
		Env:   []string{"LC_ALL=C"},
		Stdin: stdin, Stdout: stdout, Stderr: said,
	}
	status, err = f.box.Run(ctx, cmd)
	if err == nil && status != 0 {
		err = scriptError(status, said.text.String(), args[0])
	}
	return status, said, err
}

// A toolOutput keeps the beginning of what the tools print on standard error.
type toolOutput struct {
	text bytes.Buffer
	more int // how many more lines there were
}

const maxToolOutput = 64 << 10

func (s *toolOutput) Write(p []byte) (int, error) {
	kept := min(len(p), maxToolOutput-s.text.Len())
	s.text.Write(p[:kept])
	s.more += bytes.Count(p[kept:], []byte("\n"))
	return len(p), nil
}

// skipped returns the files that, as tar says, are not in the archive of boxPath. root is the name
// of the archive's root. ok reports that tar says nothing else, and does not name the root.
func (s *toolOutput) skipped(boxPath, root string) (list *sandbox.CopyError, ok bool) {
	list = &sandbox.CopyError{}
	for line := range strings.Lines(s.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasSuffix(line, ": file changed as we read it"), // it is in the archive
			strings.HasSuffix(line, ": socket ignored"), strings.HasSuffix(line, ": socket"),
			strings.Contains(line, "previous errors"): // the last line
			continue
		}
		m := tarLine.FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		name := strings.TrimPrefix(m[1], "./")
		if root != "." {
			_, name, _ = strings.Cut(name, "/")
		}
		if name == "" {
			return nil, false
		}
		var why error = errors.New(m[2])
		if errno := errnos.Of(line); errno != 0 {
			why = errno
		} else if strings.HasPrefix(m[2], "File removed") {
			why = syscall.ENOENT
		}
		list.Add(&fs.PathError{Op: "copy", Path: strings.TrimRight(boxPath, "/") + "/" + name,
			Err: why})
	}
	list.Count += s.more
	return list, true
}

// tarLine matches a line about one file, of GNU tar or of busybox tar.
var tarLine = regexp.MustCompile(
	`^tar: (?:can't (?:open|stat) ')?(\./?.*?)'?: ((?:Cannot |File |Read error |[A-Z]).*)$`)

// scriptError returns an error in the form of package os for a script that ended with status and
// whose tools printed text. p is the path of the copy.
func scriptError(status int, text, p string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		errno := errnos.Of(line)
		said, ours := strings.CutPrefix(line, "sandshell: ")
		end := strings.LastIndex(said, ": ")
		switch {
		case errno == 0:
			if strings.Contains(line, "tar: not found") ||
				strings.Contains(line, "tar: command not found") {
				return fmt.Errorf("%w: there is no tar in the sandbox", errors.ErrUnsupported)
			}
		case ours && end >= 0 && errno == syscall.EINVAL:
			return &fs.PathError{Op: "copy", Path: said[:end], Err: fs.ErrInvalid}
		case ours && end >= 0:
			return &fs.PathError{Op: "copy", Path: said[:end], Err: errno}
		default:
			return &fs.PathError{Op: "copy", Path: p, Err: fmt.Errorf("%w (%s)", errno, line)}
		}
	}
	return &fs.PathError{Op: "copy", Path: p, Err: fmt.Errorf(
		"%w: in the sandbox the copy's program ended with status %d; it said %q", syscall.EIO,
		status, strings.TrimSpace(text))}
}
