package egress

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/bounded"
)

// mostShown is how much of a body a HAR has.
const mostShown = 1 << 20

// HAR writes the tape in a directory as an HTTP Archive 1.2, which browsers and other programs
// show. Bodies are cut after 1 MiB. It has the labels of secrets where the box had placeholders.
func HAR(w io.Writer, dir string) error {
	if err := writeHAR(w, dir); err != nil {
		return fmt.Errorf("egress: write a HAR: %w", err)
	}
	return nil
}

func writeHAR(w io.Writer, dir string) error {
	type tapedAs struct {
		recording
		body string
	}
	var list []tapedAs
	heads, err := filepath.Glob(filepath.Join(dir, "*-*.json"))
	if err != nil {
		return err
	}
	for _, head := range heads {
		text, err := os.ReadFile(head)
		if err != nil {
			return err
		}
		t := tapedAs{body: strings.TrimSuffix(head, ".json") + ".body"}
		if err := json.Unmarshal(text, &t.recording); err != nil {
			return fmt.Errorf("%s: %w", head, err)
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b tapedAs) int { return a.Time.Compare(b.Time) })
	const begin = `{"log":{"version":"1.2","creator":{"name":"sandshell","version":""},"entries":[`
	if _, err := io.WriteString(w, begin); err != nil {
		return err
	}
	for i, t := range list {
		entry, err := t.entry(t.body)
		if err != nil {
			return err
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte(","), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}}\n")
	return err
}

// Names and values of a HAR.
type (
	pair  map[string]string
	entry map[string]any
)

// entry returns what a HAR has of a recording.
func (r *recording) entry(bodyFile string) (entry, error) {
	f, err := os.Open(bodyFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	shown, err := bounded.ReadAll(io.LimitReader(f, mostShown), "a body", mostShown)
	if err != nil {
		return nil, err
	}
	content := entry{"size": info.Size(), "mimeType": r.Header.Get("Content-Type")}
	setText(content, shown)
	query := []pair{}
	if u, err := url.Parse(r.URL); err == nil {
		for name, values := range u.Query() {
			for _, v := range values {
				query = append(query, pair{"name": name, "value": v})
			}
		}
	}
	request := entry{"method": r.Method, "url": r.URL, "httpVersion": "HTTP/1.1",
		"cookies": []pair{}, "headers": pairs(r.Request), "queryString": query,
		"headersSize": -1, "bodySize": len(r.Sent)}
	if len(r.Sent) > 0 {
		data := entry{"mimeType": r.Request.Get("Content-Type"), "params": []pair{}}
		setText(data, r.Sent)
		request["postData"] = data
	}
	took := float64(r.Duration) / float64(time.Millisecond)
	return entry{"startedDateTime": r.Time, "time": took, "request": request,
		"response": entry{"status": r.Status, "statusText": http.StatusText(r.Status),
			"httpVersion": "HTTP/1.1", "cookies": []pair{}, "headers": pairs(r.Header),
			"content": content, "redirectURL": r.Header.Get("Location"), "headersSize": -1,
			"bodySize": info.Size()},
		"cache": entry{}, "timings": entry{"send": 0, "wait": took, "receive": 0}}, nil
}

func setText(e entry, text []byte) {
	e["text"] = string(text)
	if !utf8.Valid(text) {
		e["text"], e["encoding"] = base64.StdEncoding.EncodeToString(text), "base64"
	}
}

func pairs(h http.Header) []pair {
	list := []pair{}
	for name, values := range h {
		for _, v := range values {
			list = append(list, pair{"name": name, "value": v})
		}
	}
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a["name"], b["name"]) })
	return list
}
