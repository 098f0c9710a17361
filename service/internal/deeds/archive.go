package deeds

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// Archives are made and unpacked by the tar of the box, with the rights of the box's user. So
// nothing of them is kept on this machine.

// tar runs the box's tar. It returns tar's exit status and the end of its messages.
func (c *call) tar(stdin io.Reader, stdout io.Writer, args ...string) (int, string, error) {
	messages := headtail.Buffer{Max: 2 << 10}
	status, err := c.Run(c.r.Context(), &sandbox.Cmd{Args: append([]string{"tar"}, args...),
		Stdin: stdin, Stdout: stdout, Stderr: &messages})
	if errors.Is(err, fs.ErrNotExist) {
		err = api.Errorf(http.StatusNotImplemented, "unsupported", "the box has no tar: %v", err)
	}
	text, _ := messages.Text()
	return status, printable.Text(strings.TrimSpace(text)), err
}

// checkDir checks the path of an archive.
func checkDir(name string) error {
	if !path.IsAbs(name) {
		return api.Invalid("path", "%q: write the absolute path of a directory", name)
	}
	return nil
}

// getArchive answers with a directory as tar.
func getArchive(c *call, q *pathQuery, _ *api.None) (any, error) {
	if err := checkDir(q.Path); err != nil {
		return nil, err
	}
	info, err := c.Files().Stat(c.r.Context(), q.Path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "archive", Path: q.Path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, fileError(err)
	}
	out := &archiveWriter{slowly: slowly{c.w, http.NewResponseController(c.w)}}
	status, messages, err := c.tar(nil, out, "-C", q.Path, "-cf", "-", ".")
	// The status 1 says that files have changed meanwhile, or could not be read.
	failed := err != nil || status > 1
	switch {
	case failed && out.begun:
		panic(http.ErrAbortHandler) // so that the client sees that the archive has no end
	case err != nil:
		return nil, err
	case !out.begun:
		return nil, api.Errorf(http.StatusForbidden, "permission", "tar: %s", messages)
	}
	return nil, nil
}

// An archiveWriter begins the answer with the first byte of the archive.
type archiveWriter struct {
	slowly
	begun bool
}

func (w *archiveWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.Header().Set("Content-Type", "application/x-tar")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
	}
	return w.slowly.Write(p)
}

// putArchive unpacks a tar into a directory, which it makes.
func putArchive(c *call, q *pathQuery, _ *api.Bytes) (any, error) {
	if err := checkDir(q.Path); err != nil {
		return nil, err
	}
	if err := c.Files().MkdirAll(c.r.Context(), q.Path, 0o755); err != nil {
		return nil, fileError(err)
	}
	body := &remembered{Reader: c.upload()}
	status, messages, err := c.tar(body, nil, "-C", q.Path, "-xof", "-")
	switch {
	case body.err != nil:
		return nil, uploadError(body.err)
	case err != nil:
		return nil, err
	case status != 0:
		return nil, api.Invalid("body", "tar: %s", messages)
	}
	return success, nil
}

// remembered remembers the error of reading.
type remembered struct {
	io.Reader
	err error
}

func (r *remembered) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
