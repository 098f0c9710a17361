package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Tape records requests and their answers in a directory, or answers from it. So an evaluation
// gets the same answers each time, without a network and without the values of secrets.
//
// Requests are told apart by method, URL and body. If one comes several times, its answers are
// replayed in the order in which they were recorded, and then the last one again. The boxes of a
// Gate have that order together: for an order of its own, give a box a Gate and a directory of its
// own. Bodies of requests have at most 16 MiB. Where secrets are, the tape has their names.
//
// WebSockets and connections of the schemes tls and tcp are not on a tape. They pass, or Replay
// refuses them.
type Tape struct {
	// Dir is the directory. Record makes it. Others may read there what the box has received: it is
	// made for the user alone.
	Dir string
	// Mode is Record by default.
	Mode TapeMode
	// Ignore names parameters of queries by which requests are not told apart, such as "time".
	Ignore []string
}

// A TapeMode says what a Tape does.
type TapeMode int

// The modes of a Tape.
const (
	// Record sends requests, and records them. The directory must be empty.
	Record TapeMode = iota
	// Replay answers from the tape, and sends nothing. A request that is not on the tape gets
	// status 502, and a text that names it.
	Replay
	// ReplayElseRecord answers from the tape what is there, and records the rest.
	ReplayElseRecord
)

// mostTaped is the largest body of a request that is taped.
const mostTaped = 16 << 20

// A deck plays a Tape.
type deck struct {
	Tape
	mu    sync.Mutex
	taped map[string][]int // by the key of a request: the numbers of its recordings
	begun map[string]int   // how often the request has come
}

// A recording is what a file of a tape has. The answer's body is in a file beside it.
type recording struct {
	Time     time.Time
	Duration time.Duration
	Method   string
	URL      string
	Request  http.Header
	Sent     []byte `json:",omitempty"` // the body, if it is not long
	Status   int
	Header   http.Header
	Trailer  http.Header `json:",omitempty"`
}

const mostSent = 1 << 20

// open returns a deck for the Tape.
func (t Tape) open() (*deck, error) {
	d := &deck{Tape: t, taped: map[string][]int{}, begun: map[string]int{}}
	switch {
	case t.Dir == "":
		return nil, errors.New("Config.Tape.Dir: it is missing: name a directory")
	case t.Mode < Record || t.Mode > ReplayElseRecord:
		return nil, fmt.Errorf("Config.Tape.Mode: there is no mode %d", t.Mode)
	}
	if t.Mode != Replay {
		if err := os.MkdirAll(t.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("Config.Tape.Dir: make %s: %w", t.Dir, err)
		}
	}
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return nil, fmt.Errorf("Config.Tape.Dir: %w: record a tape first", err)
	}
	if t.Mode == Record && len(entries) > 0 {
		return nil, fmt.Errorf("Config.Tape.Dir: %s is not empty: remove what is there, or use "+
			"ReplayElseRecord", t.Dir)
	}
	for _, entry := range entries {
		name, isHead := strings.CutSuffix(entry.Name(), ".json")
		key, number, ok := strings.Cut(name, "-")
		n, err := strconv.Atoi(number)
		if isHead && ok && err == nil {
			d.taped[key] = append(d.taped[key], n)
			slices.Sort(d.taped[key])
		}
	}
	return d, nil
}

// take returns the number of the recording that answers a request, or else of the one to make.
func (d *deck) take(key string) (number int, taped bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.begun[key]
	d.begun[key]++
	if list := d.taped[key]; d.Mode != Record && len(list) > 0 {
		return list[min(i, len(list)-1)], true
	}
	return i, false
}

func (d *deck) file(key string, number int, kind string) string {
	return filepath.Join(d.Dir, fmt.Sprintf("%s-%d.%s", key, number, kind))
}

// A label stands on a tape for a placeholder, which is another one in each box.
func (s *swap) label() string { return "{{sandshell:" + s.Env + "}}" }

// labels returns what stands for what on the tape, or in the box if back.
func (x *Exit) labels(back bool) (forms []form) {
	for _, s := range x.swaps {
		f := form{s.placeholder, s.label()}
		if back {
			f = form{f.placeholder, f.value}
		}
		forms = append(forms, f)
	}
	return forms
}

// tape answers a request from the tape, or sends it by next and records the answer.
func (x *Exit) tape(r *http.Request, w *wish, e *record, next tripper) (*http.Response, error) {
	d := x.gate.deck
	if d == nil {
		return next(r)
	}
	if isWebSocket(r) {
		if d.Mode == Replay {
			return nil, notTaped("WebSockets", w)
		}
		return next(r)
	}
	labels := x.labels(false)
	rec := &recording{Time: e.Time, Method: r.Method, Request: relabelled(r.Header, labels)}
	sent, err := x.wholeBody(r, w)
	if err != nil {
		return nil, err
	}
	rec.URL = withPlaceholders(d.url(r.URL), labels)
	text := withPlaceholders(string(sent), labels)
	if len(text) <= mostSent {
		rec.Sent = []byte(text)
	}
	sum := sha256.Sum256([]byte(rec.Method + " " + rec.URL + "\n" + text))
	key := fmt.Sprintf("%x", sum[:12])
	number, taped := d.take(key)
	switch {
	case taped:
		return x.replay(d, key, number, r, e)
	case d.Mode == Replay:
		return nil, notTaped("the request", w)
	}
	res, err := next(r)
	if err != nil {
		return nil, err
	}
	return x.record(d, key, number, rec, res)
}

func notTaped(what string, w *wish) *refusal {
	return &refusal{http.StatusBadGateway, fmt.Sprintf("there is no recording of %s %s", what,
		w.text())}
}

// wholeBody reads the body of a request, and gives it one to read again.
func (x *Exit) wholeBody(r *http.Request, w *wish) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostTaped+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostTaped {
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"%s is recorded, with bodies of at most %d bytes", w.host, mostTaped)}
	}
	setBody(r, text)
	return text, nil
}

// url returns the URL by which a request is known.
func (d *deck) url(u *url.URL) string {
	v := *u
	if len(d.Ignore) > 0 {
		var kept []string
		for part := range strings.SplitSeq(u.RawQuery, "&") {
			name, _, _ := strings.Cut(part, "=")
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
			if !slices.Contains(d.Ignore, name) {
				kept = append(kept, part)
			}
		}
		v.RawQuery = strings.Join(kept, "&")
	}
	return v.String()
}

func relabelled(h http.Header, forms []form) http.Header {
	h = h.Clone()
	inHeaders(h, forms)
	return h
}

// record returns the answer, and records what is read of it. Only an answer that is read to its end
// becomes a part of the tape.
func (x *Exit) record(d *deck, key string, number int, rec *recording,
	res *http.Response) (*http.Response, error) {
	f, err := os.CreateTemp(d.Dir, "begun-")
	if err != nil {
		_ = res.Body.Close()
		return nil, fmt.Errorf("record an answer: %w", err)
	}
	labels := x.labels(false)
	rec.Status, rec.Header = res.StatusCode, relabelled(res.Header, labels)
	t := &taping{from: res.Body, to: f}
	t.ended = func() error {
		rec.Trailer = relabelled(res.Trailer, labels)
		rec.Duration = time.Since(rec.Time)
		return d.keep(key, number, rec, f.Name())
	}
	if len(labels) > 0 {
		// The file gets labels, and the box what it has received.
		t.through, t.write = io.Pipe()
		t.copied = make(chan error, 1)
		go func() {
			_, err := io.Copy(f, &replacing{r: t.through, forms: labels})
			_ = t.through.CloseWithError(err)
			t.copied <- err
		}()
	}
	res.Body = t
	return res, nil
}

// keep makes a recording a part of the tape. Its body is there before it is.
func (d *deck) keep(key string, number int, rec *recording, body string) error {
	head, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return err
	}
	if err := os.Rename(body, d.file(key, number, "body")); err != nil {
		return err
	}
	begun := d.file(key, number, "begun")
	if err := os.WriteFile(begun, head, 0o600); err != nil {
		return err
	}
	if err := os.Rename(begun, d.file(key, number, "json")); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taped[key] = append(d.taped[key], number)
	slices.Sort(d.taped[key])
	return nil
}

// replay answers from the tape.
func (x *Exit) replay(d *deck, key string, number int, r *http.Request, e *record) (*http.Response,
	error) {
	head, err := os.ReadFile(d.file(key, number, "json"))
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var rec recording
	if err := json.NewDecoder(bytes.NewReader(head)).Decode(&rec); err != nil {
		return nil, fmt.Errorf("replay %s: %w", d.file(key, number, "json"), err)
	}
	f, err := os.Open(d.file(key, number, "body"))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the tape is not complete: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	labels := x.labels(true)
	e.Replayed = true
	res := &http.Response{StatusCode: rec.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: relabelled(rec.Header, labels), Trailer: relabelled(rec.Trailer, labels),
		Body: f, ContentLength: -1, Request: r}
	if len(labels) > 0 {
		res.Header.Del("Content-Length")
		res.Body = body{&replacing{r: f, forms: labels}, f}
	}
	if res.Header == nil {
		res.Header = http.Header{}
	}
	return res, nil
}
