package harness

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
)

//go:embed report.html
var reportSource string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"seconds": seconds,
	"json": func(v any) (string, error) {
		data, err := json.Marshal(v)
		return string(data), err
	},
}).Parse(reportSource))

// A row is a task in the report.
type row struct {
	Result
	LogText string
	Cut     bool // there is more in the log
	Frames  []frame
}

// writeReport writes report.html: one file, with the ends of the logs and the begins of the
// recordings in it.
func (s *Summary) writeReport(dir string) error {
	page := struct {
		*Summary
		Statuses []Status
		Rows     []row
		Time     string
	}{Summary: s, Statuses: Statuses, Time: time.Now().UTC().Format("2006-01-02 15:04 UTC")}
	for _, r := range s.Results {
		text, whole, err := tail(filepath.Join(dir, filepath.FromSlash(r.Log)), reportLogMax)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		var frames []frame
		if r.Recording != "" {
			if frames, err = playback(filepath.Join(dir,
				filepath.FromSlash(r.Recording))); err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
		page.Rows = append(page.Rows, row{r, text, !whole, frames})
	}
	var html bytes.Buffer
	if err := reportTemplate.Execute(&html, page); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return writeWhole(filepath.Join(dir, reportFile), html.Bytes())
}

// reportLogMax is how much of each log's end the report holds; the log is beside it.
const reportLogMax = 32 << 10

// tail returns the end of a file as text. A file that somebody has removed is empty.
func tail(path string, limit int64) (text string, whole bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	from := max(info.Size()-limit, 0)
	data, err := bounded.ReadAll(io.NewSectionReader(f, from, limit), "a log", int(limit))
	text = strings.ToValidUTF8(string(data), "\uFFFD")
	return text, from == 0, err
}
