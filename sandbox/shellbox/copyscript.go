package shellbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// copyPath returns a path in the sandbox as the host gets it. A path relative to the main session's directory is made absolute. So is
// a path that begins with ~ if the box has a HOME of its own: the host does not know that HOME.
func (b *Box) copyPath(p string) (string, error) {
	switch {
	case p == "" || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("%w: the sandbox's path %q is empty or has a NUL byte", fs.ErrInvalid, p)
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

// copyScript runs one end of a copy in the sandbox, within a call, and returns the status it ended with. args[0] is the path.
func (b *Box) copyScript(ctx context.Context, script string, args []string, stdin io.Reader, stdout io.Writer) (status int, err error) {
	var stderr bytes.Buffer
	cmd := &sandbox.Cmd{
		Args:  append([]string{"sh", "-c", script, "sh"}, args...),
		Env:   []string{"LC_ALL=C"},
		Stdin: stdin, Stdout: stdout, Stderr: &stderr,
	}
	status, err = b.runs(ctx, cmd)
	if err == nil && status != 0 {
		err = copyError(status, stderr.String(), args[0])
	}
	return status, err
}

// copyError turns what the tools said, which ended with that status, into an error as package os returns it.
func copyError(status int, text, p string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if said, ok := strings.CutPrefix(line, "sandshell: "); ok {
			name, p, _ := strings.Cut(said, " ")
			return &fs.PathError{Op: "copy", Path: p, Err: copyErrors[name]}
		}
		for _, errno := range copyErrors {
			if strings.Contains(strings.ToLower(line), strings.ToLower(errno.Error())) {
				return &fs.PathError{Op: "copy", Path: p, Err: fmt.Errorf("%w (%s)", errno, line)}
			}
		}
		if strings.Contains(line, "tar: not found") || strings.Contains(line, "tar: command not found") {
			return fmt.Errorf("%w: there is no tar in the sandbox", errors.ErrUnsupported)
		}
	}
	return &fs.PathError{Op: "copy", Path: p, Err: fmt.Errorf("%w: in the sandbox the copy's program ended with status %d; it said %q", syscall.EIO, status, strings.TrimSpace(text))}
}

var copyErrors = map[string]syscall.Errno{
	"ENOENT":  syscall.ENOENT,
	"EACCES":  syscall.EACCES,
	"EISDIR":  syscall.EISDIR,
	"ENOTDIR": syscall.ENOTDIR,
	"ENOSPC":  syscall.ENOSPC,
	"EROFS":   syscall.EROFS,
	"EPERM":   syscall.EPERM,
	"EDQUOT":  syscall.EDQUOT,
	"EINVAL":  syscall.EINVAL,
	"EPIPE":   syscall.EPIPE,
}
