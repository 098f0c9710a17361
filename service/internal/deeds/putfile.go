package deeds

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// received is the body of a request. Each of its reads may take eventLimit.
type received struct {
	io.Reader
	conn *http.ResponseController
}

func (s *received) Read(p []byte) (int, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(eventLimit))
	defer func() { _ = s.conn.SetReadDeadline(time.Time{}) }()
	return s.Reader.Read(p)
}

// upload returns the body of a request, of at most MaxUpload bytes.
func (c *call) upload() io.Reader {
	return &received{http.MaxBytesReader(c.w, c.r.Body, c.MaxUpload),
		http.NewResponseController(c.w)}
}

// uploadError returns the error of reading or keeping an upload.
func uploadError(err error) error {
	var large *http.MaxBytesError
	var here *fs.PathError
	switch {
	case errors.As(err, &large):
		return api.Errorf(http.StatusRequestEntityTooLarge, "too_large",
			"the body has more than %d bytes", large.Limit)
	case errors.As(err, &here): // a file of this machine: clients do not learn its path
		return api.Errorf(http.StatusServiceUnavailable, "unavailable", "keep the upload: %v",
			here.Err)
	}
	return api.Invalid("body", "%v", err)
}

type putQuery struct {
	Path    string `query:"path"`
	Mode    string `query:"mode"`
	Parents bool   `query:"parents"`
}

// inMemory is the greatest size of an upload that is kept in memory.
const inMemory = 1 << 20

// putFile writes a file as a whole. A program in the box sees the old content or all of the new.
func putFile(c *call, q *putQuery, _ *api.Bytes) (any, error) {
	mode, err := parseMode(q.Mode, 0o644)
	if err != nil {
		return nil, err
	}
	if q.Path == "" {
		return nil, errNoPath
	}
	ctx, files, body := c.r.Context(), c.Files(), c.upload()
	begin, err := io.ReadAll(io.LimitReader(body, inMemory))
	if err != nil {
		return nil, uploadError(err)
	}
	var opts []sandbox.WriteOption
	if q.Parents {
		opts = append(opts, sandbox.Parents())
	}
	if len(begin) < inMemory {
		err = files.WriteFile(ctx, q.Path, begin, mode, opts...)
	} else {
		err = c.putLarge(ctx, q, io.MultiReader(bytes.NewReader(begin), body), mode)
	}
	if err != nil {
		return nil, fileError(err)
	}
	return c.stat(q.Path)
}

// putLarge writes a file by way of a file of this machine.
func (c *call) putLarge(ctx context.Context, q *putQuery, body io.Reader, mode fs.FileMode) error {
	temp, err := os.CreateTemp("", "sandshell-upload-")
	if err != nil {
		return uploadError(err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if _, err := io.Copy(temp, body); err != nil {
		return uploadError(err)
	}
	if q.Parents {
		if err := c.Files().MkdirAll(ctx, path.Dir(q.Path), 0o755); err != nil {
			return err
		}
	}
	switch info, err := c.Files().Stat(ctx, q.Path); {
	case err == nil && info.IsDir(): // the copy would be made in it
		return &fs.PathError{Op: "write", Path: q.Path, Err: syscall.EISDIR}
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := temp.Chmod(mode); err != nil {
		return err
	}
	return c.CopyTo(ctx, temp.Name(), q.Path)
}

func parseMode(text string, otherwise fs.FileMode) (fs.FileMode, error) {
	if text == "" {
		return otherwise, nil
	}
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 {
		return 0, api.Invalid("mode", "%q: write permissions, as 0644", text)
	}
	return fs.FileMode(mode), nil
}
