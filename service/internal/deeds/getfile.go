package deeds

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/sandshell/sandshell/service/internal/api"
)

// getFile answers with a file's content. Nothing in a box may act as a page of this API, so the
// type of the content is always the same.
func getFile(c *call, q *pathQuery, _ *api.None) (any, error) {
	if q.Path == "" {
		return nil, errNoPath
	}
	f, err := c.Files().Open(c.r.Context(), q.Path)
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fileError(err)
	}
	if info.IsDir() {
		return nil, api.Errorf(http.StatusConflict, "wrong_kind",
			"%q is a directory: GET …/files/list lists it, …/files/archive has it as tar", q.Path)
	}
	var content io.ReadSeeker = &ahead{bufio.NewReaderSize(f, readAhead), f}
	if info.Size() == 0 { // as files of /proc say
		data, err := c.Files().ReadFile(c.r.Context(), q.Path, maxSizeless)
		if err != nil {
			return nil, fileError(err)
		}
		content = bytes.NewReader(data)
	}
	header := c.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Disposition", "attachment")
	header.Set("Cache-Control", "no-store")
	out := &fileWriter{slowly: slowly{c.w, http.NewResponseController(c.w)}}
	http.ServeContent(out, c.r, "", info.ModTime(), content)
	if out.noRange {
		return nil, api.Errorf(http.StatusRequestedRangeNotSatisfiable, "past_the_end",
			"Range: %s: the file has %d bytes", c.r.Header.Get("Range"), info.Size())
	}
	return nil, nil
}

// A fileWriter leaves out ServeContent's answer that there is no such range, which is not JSON.
type fileWriter struct {
	slowly
	noRange bool
}

func (w *fileWriter) WriteHeader(status int) {
	if w.noRange = status == http.StatusRequestedRangeNotSatisfiable; !w.noRange {
		w.slowly.WriteHeader(status)
	}
}

func (w *fileWriter) Write(p []byte) (int, error) {
	if w.noRange {
		return len(p), nil
	}
	return w.slowly.Write(p)
}

// readAhead is how much of a file is read at once: each read is a round trip to the box.
const readAhead = 512 << 10

// An ahead is a file that is read in large parts.
type ahead struct {
	*bufio.Reader
	file io.Seeker
}

func (a *ahead) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent { // of the file, which is ahead
		offset -= int64(a.Buffered())
	}
	n, err := a.file.Seek(offset, whence)
	a.Reset(a.file.(io.Reader))
	return n, err
}

// maxSizeless is how much is read of a file that does not say its size.
const maxSizeless = 4 << 20

// slowly is a writer each of whose writes may take eventLimit.
type slowly struct {
	http.ResponseWriter
	conn *http.ResponseController
}

func (s *slowly) Write(p []byte) (int, error) {
	_ = s.conn.SetWriteDeadline(time.Now().Add(eventLimit))
	defer func() { _ = s.conn.SetWriteDeadline(time.Time{}) }()
	return s.ResponseWriter.Write(p)
}
