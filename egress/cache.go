package egress

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Cache keeps answers that anybody may keep in a directory, so that boxes that install the same
// packages download them once. The rules are those of a cache that users share (RFC 9111):
//
//   - It keeps whole answers of status 200 to GET, for as long as their Cache-Control or Expires
//     allows everybody to keep them. Package files are such; most registries say so for months.
//   - A request gets a kept answer only if it is for the same URL and has the same headers. So no
//     box can have an answer kept for others that they would not have got themselves.
//   - Requests with Authorization, Cookie, Range, Cache-Control, Pragma or a condition pass, and
//     those to hosts of a Secret.
//
// Boxes that ask for the same at once each download it. The rules of the Gate are asked first, and
// Limits count what the box receives.
type Cache struct {
	// Dir is the directory. New makes it, for the user alone. Gates and programs may share it.
	Dir string
	// Bytes is about how much it may hold. Of more, what nobody has asked for the longest goes, and
	// an answer of more than an eighth of it is not kept. Default: 10 GiB.
	Bytes int64
}

const defaultCacheBytes = 10 << 30

// A shelf is an open Cache. Each file has a kept, as a line, and then the body of the answer.
type shelf struct {
	Cache
	mu   sync.Mutex
	used int64
}

// A kept says of which request an answer is, and until when it may be given.
type kept struct {
	URL    string
	From   time.Time
	Until  time.Time
	Header http.Header
}

func (c Cache) open() (*shelf, error) {
	switch {
	case c.Dir == "":
		return nil, errors.New("Config.Cache.Dir: it is missing: name a directory")
	case c.Bytes < 0:
		return nil, fmt.Errorf("Config.Cache.Bytes: %d is negative: 0 stands for %d", c.Bytes,
			int64(defaultCacheBytes))
	}
	c.Bytes = cmp.Or(c.Bytes, defaultCacheBytes)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("Config.Cache.Dir: make %s: %w", c.Dir, err)
	}
	s := &shelf{Cache: c}
	files, err := s.files()
	if err != nil {
		return nil, fmt.Errorf("Config.Cache.Dir: %w", err)
	}
	for _, f := range files {
		s.used += onDisk(f)
	}
	return s, nil
}

// onDisk is what a file takes of a disk, about: many small ones are more than their bytes.
func onDisk(f fs.FileInfo) int64 {
	const block = 4 << 10
	return (f.Size() + block - 1) / block * block
}

const (
	cachedSuffix = ".answer"
	begunPrefix  = "begun-"
	// mostBegun is how long an answer may take. What is older was begun by a program that has been
	// killed.
	mostBegun = 24 * time.Hour
)

// files returns what the cache holds.
func (s *shelf) files() ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(s.Dir)
	var files []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		switch name := entry.Name(); {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(name, cachedSuffix):
			files = append(files, info)
		case strings.HasPrefix(name, begunPrefix) && time.Since(info.ModTime()) > mostBegun:
			_ = os.Remove(filepath.Join(s.Dir, name))
		}
	}
	return files, err
}

// cached answers a request from the cache, or sends it by next and keeps the answer.
func (x *Exit) cached(r *http.Request, w *wish, rule *Rule, e *record,
	next tripper) (*http.Response, error) {
	s := x.gate.shelf
	if s == nil || !x.mayCache(r, w) {
		return next(r)
	}
	file := s.file(r, rule)
	if res := s.find(file, r); res != nil {
		e.Cached = true
		return res, nil
	}
	res, err := next(r)
	if err != nil {
		return nil, err
	}
	s.keep(file, r, res)
	return res, nil
}

// personal are headers of requests whose answer may be for nobody else, or is to be new or a part.
var personal = []string{"Authorization", "Cookie", "Range", "Cache-Control", "Pragma", "If-Match",
	"If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"}

func (x *Exit) mayCache(r *http.Request, w *wish) bool {
	if r.Method != http.MethodGet || r.Body != nil && r.Body != http.NoBody || isWebSocket(r) {
		return false
	}
	for _, name := range personal {
		if _, has := r.Header[name]; has {
			return false
		}
	}
	for _, swap := range x.swaps {
		if in, _ := swap.find(r, w); in != 0 || swap.at(w) {
			return false
		}
	}
	return true
}

// file returns the file for the answer to a request.
func (s *shelf) file(r *http.Request, rule *Rule) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", r.URL.String(), rule.To)
	_ = r.Header.Write(h) // sorted by name
	return filepath.Join(s.Dir, fmt.Sprintf("%x%s", h.Sum(nil)[:16], cachedSuffix))
}

// mostHeader is the longest first line of a file.
const mostHeader = 1 << 20

// find returns the answer that is kept in a file; nil if there is none, or it is too old.
func (s *shelf) find(file string, r *http.Request) *http.Response {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	from := bufio.NewReaderSize(f, 64<<10)
	line, err := readLine(from, mostHeader)
	var k kept
	if err == nil {
		err = json.Unmarshal(line, &k)
	}
	info, statErr := f.Stat()
	now := time.Now()
	if err != nil || statErr != nil || k.URL != r.URL.String() || now.Before(k.From) ||
		!now.Before(k.Until) {
		_ = f.Close()
		return nil
	}
	_ = os.Chtimes(file, now, now) // when it was asked for the last time
	if k.Header == nil {
		k.Header = http.Header{}
	}
	k.Header.Set("Age", strconv.Itoa(int(now.Sub(k.From).Seconds())))
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: k.Header, Body: body{from, f}, Request: r,
		ContentLength: info.Size() - int64(len(line)+1)}
}

// readLine reads a line of at most so many bytes, without its end.
func readLine(from *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull) || len(line) > most:
			return nil, err
		}
	}
}

// keep makes the answer one that is kept when it has been read to its end, if it may be kept. What
// fails is no error: then it is not kept.
func (s *shelf) keep(file string, r *http.Request, res *http.Response) {
	lifetime := freshFor(res)
	room := s.Bytes / 8
	if lifetime <= 0 || res.ContentLength > room || len(res.Trailer) > 0 {
		return
	}
	now := time.Now()
	line, err := json.Marshal(kept{URL: r.URL.String(), From: now, Until: now.Add(lifetime),
		Header: res.Header})
	if err != nil || len(line) >= mostHeader {
		return
	}
	f, err := os.CreateTemp(s.Dir, begunPrefix)
	if err != nil {
		return
	}
	k := &keeping{from: res.Body, to: f, room: room}
	k.write(append(line, '\n'))
	k.ended = func() error { return s.put(f.Name(), file) }
	res.Body = k
}

// put makes a whole file one of the cache, and makes room for it.
func (s *shelf) put(from, file string) error {
	info, err := os.Stat(from)
	if err == nil {
		err = os.Rename(from, file)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used += onDisk(info); s.used <= s.Bytes {
		return nil
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	s.used = 0
	for _, f := range files { // the last used first; a tenth is left for the next
		if s.used+onDisk(f) > s.Bytes-s.Bytes/10 {
			_ = os.Remove(filepath.Join(s.Dir, f.Name()))
			continue
		}
		s.used += onDisk(f)
	}
	return nil
}

// freshFor returns for how long anybody may keep an answer; 0 if it may not be kept.
func freshFor(res *http.Response) time.Duration {
	if _, own := res.Header["Set-Cookie"]; own || res.StatusCode != http.StatusOK ||
		slices.Contains(res.Header["Vary"], "*") {
		return 0
	}
	seconds := map[string]int{}
	for _, text := range res.Header["Cache-Control"] {
		for part := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch name = strings.ToLower(name); name {
			case "no-store", "no-cache", "private":
				return 0
			case "max-age", "s-maxage":
				n, err := strconv.Atoi(strings.Trim(value, `"`))
				if err != nil || n < 0 {
					return 0
				}
				if old, again := seconds[name]; !again || n < old {
					seconds[name] = n
				}
			}
		}
	}
	lifetime, given := seconds["s-maxage"]
	if !given {
		lifetime, given = seconds["max-age"]
	}
	if !given {
		until, err := http.ParseTime(res.Header.Get("Expires"))
		from, fromErr := http.ParseTime(res.Header.Get("Date"))
		if err != nil || fromErr != nil {
			return 0
		}
		lifetime = int(until.Sub(from).Seconds())
	}
	age, _ := strconv.Atoi(res.Header.Get("Age"))
	const year = 365 * 24 * 60 * 60
	return time.Duration(min(lifetime, year)-max(age, 0)) * time.Second
}

// A keeping is the body of an answer that is written to a file as it is read.
type keeping struct {
	from  io.ReadCloser
	to    *os.File // nil: it is not kept
	room  int64
	ended func() error // makes the whole file one of the cache
}

// Read implements io.Reader.
func (k *keeping) Read(p []byte) (int, error) {
	n, err := k.from.Read(p)
	k.write(p[:n])
	if err == io.EOF && k.to != nil {
		if k.to.Close() != nil || k.ended() != nil {
			_ = os.Remove(k.to.Name())
		}
		k.to = nil
	}
	return n, err
}

func (k *keeping) write(p []byte) {
	if k.to == nil {
		return
	}
	k.room -= int64(len(p))
	if _, err := k.to.Write(p); err != nil || k.room < 0 {
		k.drop()
	}
}

func (k *keeping) drop() {
	_ = k.to.Close()
	_ = os.Remove(k.to.Name())
	k.to = nil
}

// Close implements io.Closer. An answer that was not read to its end is not kept.
func (k *keeping) Close() error {
	if k.to != nil {
		k.drop()
	}
	return k.from.Close()
}
