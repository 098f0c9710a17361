package shellbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/errnos"
	"github.com/sandshell/sandshell/sandbox"
)

// copyPath returns a path in the sandbox as the host gets it. A path relative to the main session's
// directory is made absolute. So is a path that begins with ~ if the box has a HOME of its own: the
// host does not know that HOME.
func (b *Box) copyPath(p string) (string, error) {
	switch {
	case p == "" || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("%w: the sandbox's path %q is empty or has a NUL byte", fs.ErrInvalid,
			p)
	case path.IsAbs(p):
		return p, nil
	case p == "~" || strings.HasPrefix(p, "~/"):
		for _, kv := range slices.Backward(b.opts.Env) {
			if home, ok := strings.CutPrefix(kv, "HOME="); ok {
				return archive.ExpandHome(p, home), nil
			}
		}
		return p, nil
	}
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	return b.session.cwd + "/" + p, nil
}

// copyFailed returns why a Copier failed.
func (b *Box) copyFailed(ctx context.Context, err error) error {
	var typed *fs.PathError
	if ctx.Err() == nil && !errors.As(err, &typed) {
		return b.lostOr(err)
	}
	return ctxerr.Explain(ctx, err)
}

// copyScript runs one end of a copy in the sandbox, within a call, and returns the status it ended
// with and what it said. args[0] is the path.
func (b *Box) copyScript(ctx context.Context, script string, args []string, stdin io.Reader,
	stdout io.Writer) (status int, said *copySaid, err error) {
	said = &copySaid{}
	cmd := &sandbox.Cmd{
		Args:  append([]string{"sh", "-c", script, "sh"}, args...),
		Env:   []string{"LC_ALL=C"},
		Stdin: stdin, Stdout: stdout, Stderr: said,
	}
	status, err = b.runs(ctx, cmd)
	if err == nil && status != 0 {
		err = copyError(status, said.text.String(), args[0])
	}
	return status, said, err
}

// copySaid keeps the beginning of what the tools say.
type copySaid struct {
	text bytes.Buffer
	more int // lines that are not kept
}

const mostCopySaid = 64 << 10

func (s *copySaid) Write(p []byte) (int, error) {
	kept := min(len(p), mostCopySaid-s.text.Len())
	s.text.Write(p[:kept])
	s.more += bytes.Count(p[kept:], []byte("\n"))
	return len(p), nil
}

// leftOut returns what tar says that it has left out of the archive of boxPath, whose root has that
// name. ok: it says nothing else, and nothing of the root.
func (s *copySaid) leftOut(boxPath, root string) (left *sandbox.CopyError, ok bool) {
	left = &sandbox.CopyError{}
	for line := range strings.Lines(s.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasSuffix(line, ": file changed as we read it"), // it is there as it was
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
		left.Add(&fs.PathError{Op: "copy", Path: strings.TrimRight(boxPath, "/") + "/" + name,
			Err: why})
	}
	left.Count += s.more
	return left, true
}

// tarLine is how tar says what is wrong with a file: GNU's, and busybox's.
var tarLine = regexp.MustCompile(
	`^tar: (?:can't (?:open|stat) ')?(\./?.*?)'?: ((?:Cannot |File |Read error |[A-Z]).*)$`)

// copyError turns what the tools said, which ended with that status, into an error as package os
// returns it.
func copyError(status int, text, p string) error {
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
