package e2b

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"github.com/sandshell/sandshell/internal/e2b"
)

// writeParts writes the files of a form: the parts that are named "file". The path of a file is
// that of the request or, if that has none, the file name of its part. Each gets the metadata.
func (c *call) writeParts(body io.Reader, boundary string, metadata map[string]string) (
	files []written, err error) {
	for parts := multipart.NewReader(body, boundary); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, bodyError(err)
		}
		if part.FormName() != "file" {
			continue
		}
		name := c.r.URL.Query().Get("path")
		if name == "" {
			// Part.FileName would cut off the directories.
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			name = params["filename"]
		}
		if files, err = c.write(files, name, part, metadata); err != nil {
			return nil, err
		}
	}
	if files == nil {
		return nil, e2b.Errorf(e2b.InvalidArgument, `the form has no part "file"`)
	}
	return files, nil
}
