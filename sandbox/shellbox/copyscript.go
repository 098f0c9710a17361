package shellbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/sandbox"
)

// copyScript runs one end of a copy in the sandbox. args[0] is the path, relative to the main session's directory.
func (b *Box) copyScript(ctx context.Context, script string, args []string, stdin io.Reader, stdout io.Writer) error {
	p := args[0]
	if p == "" || strings.ContainsRune(p, 0) {
		return fmt.Errorf("%w: the sandbox's path %q", fs.ErrInvalid, p)
	}
	if !path.IsAbs(p) && p != "~" && !strings.HasPrefix(p, "~/") {
		b.session.mu.Lock()
		p = b.session.cwd + "/" + p
		b.session.mu.Unlock()
	}
	var stderr bytes.Buffer
	cmd := &sandbox.Cmd{
		Args:  append([]string{"sh", "-c", script, "sh", p}, args[1:]...),
		Env:   []string{"LC_ALL=C"},
		Stdin: stdin, Stdout: stdout, Stderr: &stderr,
	}
	code, err := b.run(ctx, cmd)
	if err != nil {
		return err
	}
	if code != 0 {
		return copyError(stderr.String(), p)
	}
	return nil
}

// copyError makes an error like os's of what the tools said.
func copyError(text, p string) error {
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
	return fmt.Errorf("in the sandbox: %s", strings.TrimSpace(text))
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
}
