package e2b

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
)

// Sign returns the signature of an address of a file: who has a box's token can make an address
// that allows one deed, "read" or "write", as SDKs do. end is the Unix time of the address's end,
// or "".
func Sign(path, deed, user, token, end string) string {
	text := path + ":" + deed + ":" + user + ":" + token
	if end != "" {
		text += ":" + end
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// signature returns the signature that a request for /files needs.
func signature(r *http.Request, token string) string {
	q := r.URL.Query()
	deed := "read"
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		deed = "write"
	}
	return Sign(q.Get("path"), deed, q.Get("username"), token, q.Get("signature_expiration"))
}

// checkSignature returns why a request's signature is not valid, or "".
func checkSignature(r *http.Request, token string) string {
	q := r.URL.Query()
	if !same(q.Get("signature"), signature(r, token)) {
		return "invalid signature"
	}
	if end := q.Get("signature_expiration"); end != "" {
		at, err := strconv.ParseInt(end, 10, 64)
		if err != nil || time.Now().Unix() >= at {
			return "signature is already expired"
		}
	}
	return ""
}

// failFile answers a request for /files with an error, in the form of the control plane.
func failFile(w http.ResponseWriter, err error) {
	if isGone(err) {
		panic(http.ErrAbortHandler)
	}
	e := e2b.ErrorOf(err)
	status := e.Status()
	if e.Code == e2b.ResourceExhausted { // the disk: 429 would say that a later try helps
		status = http.StatusInsufficientStorage
	}
	fail(w, status, "%s", e.Message)
}

// download answers with a file's content.
func (c *call) download() {
	name := c.account.path(c.r.URL.Query().Get("path"))
	f, err := c.box.Files().Open(c.r.Context(), name)
	if err != nil {
		failFile(c.w, fileError("file", name, err))
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		failFile(c.w, fileError("file", name, err))
		return
	}
	var content io.ReadSeeker = f
	if info.Size() == 0 { // as files of /proc say
		data, err := c.box.Files().ReadFile(c.r.Context(), name, maxSizeless)
		if err != nil {
			failFile(c.w, fileError("file", name, err))
			return
		}
		content = bytes.NewReader(data)
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream") // nothing of a box acts as a page
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("Cache-Control", "no-store")
	http.ServeContent(c.w, c.r, "", info.ModTime(), content)
}

// maxSizeless is how much is read of a file that does not say its size.
const maxSizeless = 4 << 20

// A written is a file that an upload has made.
type written struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"`

	Metadata map[string]string `json:"metadata,omitempty"`
}

// upload writes the files of a request: one as the body, or any number as parts of a form.
func (c *call) upload() {
	metadata, err := metadataOf(c.r.Header)
	if err != nil {
		failFile(c.w, err)
		return
	}
	body := io.Reader(http.MaxBytesReader(c.w, c.r.Body, c.config.MaxUpload))
	if encoding := c.r.Header.Get("Content-Encoding"); encoding == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			fail(c.w, http.StatusBadRequest, "the body is not gzip: %v", err)
			return
		}
		body = &unpacked{z, c.config.MaxUpload}
	} else if encoding != "" && encoding != "identity" {
		fail(c.w, http.StatusNotImplemented, "Content-Encoding: %s: send gzip, or none", encoding)
		return
	}
	kind, params, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	var files []written
	switch {
	case kind == "application/octet-stream":
		files, err = c.write(files, c.r.URL.Query().Get("path"), body, metadata)
	case kind == "multipart/form-data" && params["boundary"] != "":
		files, err = c.writeParts(body, params["boundary"], metadata)
	default:
		fail(c.w, http.StatusUnsupportedMediaType, "Content-Type: %q: send "+
			"application/octet-stream or multipart/form-data", kind)
		return
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large), errors.Is(err, errTooLarge):
		fail(c.w, http.StatusRequestEntityTooLarge, "the body has more than %d bytes",
			c.config.MaxUpload)
	case err != nil:
		failFile(c.w, err)
	default:
		answerJSON(c.w, http.StatusOK, files)
	}
}

var errTooLarge = errors.New("the body is too large")

// An unpacked bounds the size of what a compressed body becomes.
type unpacked struct {
	io.Reader
	left int64
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// inMemory is the greatest size of an upload that is kept in memory.
const inMemory = 1 << 20

// write writes one file, as a whole: a program in the box sees the old content or all of the new.
// Then it replaces the file's metadata.
func (c *call) write(files []written, name string, body io.Reader,
	metadata map[string]string) ([]written, error) {
	if name == "" {
		return nil, e2b.Errorf(e2b.InvalidArgument, "path: it is missing: name a file")
	}
	name = c.account.path(name)
	ctx := c.r.Context()
	begin, err := io.ReadAll(io.LimitReader(body, inMemory))
	if err != nil {
		return nil, bodyError(err)
	}
	if err := c.mkdirAll(path.Dir(name)); err != nil {
		return nil, err
	}
	info, err := c.box.Files().Stat(ctx, name)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "write", Path: name, Err: syscall.EISDIR}
	}
	if err != nil && !isNew {
		return nil, fileError("file", name, err)
	}
	mode := fs.FileMode(0o644)
	if !isNew {
		mode = info.Mode().Perm()
	}
	before, err := c.attributesBefore(name, isNew, metadata)
	if err != nil {
		return nil, fileError("file", name, err)
	}
	large := len(begin) == inMemory
	if !large {
		err = c.box.Files().WriteFile(ctx, name, begin, mode)
	} else {
		err = c.writeLarge(name, io.MultiReader(bytes.NewReader(begin), body), mode)
	}
	if err == nil {
		err = c.setMetadata(name, before, large, metadata)
	}
	if err == nil && isNew {
		err = c.giveAway(name)
	}
	if err != nil {
		return nil, fileError("file", name, err)
	}
	return append(files, written{path.Base(name), "file", name, metadata}), nil
}

// writeLarge writes a file by way of a file of this machine.
func (c *call) writeLarge(name string, body io.Reader, mode fs.FileMode) error {
	temp, err := os.CreateTemp("", "sandshell-upload-")
	if err != nil {
		return bodyError(err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if _, err := io.Copy(temp, body); err != nil {
		return bodyError(err)
	}
	if err := temp.Chmod(mode); err != nil {
		return bodyError(err)
	}
	return c.box.CopyTo(c.r.Context(), temp.Name(), name)
}

// bodyError returns the error of reading an upload, or of keeping it here.
func bodyError(err error) error {
	var here *fs.PathError
	if errors.As(err, &here) { // clients do not learn its path
		return e2b.Errorf(e2b.Unavailable, "keep the upload: %v", here.Err)
	}
	if errors.As(err, new(*http.MaxBytesError)) || errors.Is(err, errTooLarge) {
		return err
	}
	return e2b.Errorf(e2b.InvalidArgument, "the body: %v", err)
}
