package egress

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A warehouse is an outside that counts what it is asked for. The path's words, after the name, are
// headers of the answer: /a/Cache-Control=max-age=60.
type warehouse struct {
	*outside
	asked atomic.Int64
}

func newWarehouse(t *testing.T) *warehouse {
	w := &warehouse{outside: newOutside(t)}
	w.mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		n, status := w.asked.Add(1), http.StatusOK
		for _, word := range strings.Split(r.URL.Path, "/")[2:] {
			name, value, _ := strings.Cut(word, "=")
			if name == "status" {
				status = http.StatusNotFound
				continue
			}
			rw.Header().Add(name, value)
		}
		if r.URL.Query().Has("cut") {
			rw.Header().Set("Content-Length", "1000")
		}
		rw.WriteHeader(status)
		fmt.Fprintf(rw, "answer %d", n)
	})
	return w
}

// box opens a box of a gate of its own.
func (w *warehouse) box(t *testing.T, c Cache, secrets ...Secret) *boxEnd {
	t.Helper()
	return open(t, Config{Roots: w.roots, Cache: &c, Secrets: secrets,
		Allow: w.rules("https://a.test", "http://a.test", "https://api.test")}, "")
}

// get returns the text of an answer, and whether it was kept.
func (b *boxEnd) get(url string, headers ...string) (text string, cached bool) {
	b.t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	require.NoError(b.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	before := len(b.all())
	res, err := b.client("http", true).Do(r)
	require.NoError(b.t, err)
	all, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, res.Body.Close())
	return string(all), b.last(before + 1).Cached
}

func (b *boxEnd) all() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Event{}, b.events...)
}

const (
	day = "Cache-Control=public, max-age=86400"
	pkg = "https://a.test/pkg/" + day
)

// TestCache shows that boxes of several gates, one after the other and together, share what they
// have downloaded.
func TestCache(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	dir := filepath.Join(t.TempDir(), "cache")
	one, two := w.box(t, Cache{Dir: dir}), w.box(t, Cache{Dir: dir})
	text, cached := one.get(pkg)
	require.Equal(t, "answer 1", text)
	require.False(t, cached)
	var wait sync.WaitGroup
	for range 20 {
		for _, b := range []*boxEnd{one, two} {
			wait.Go(func() {
				res, err := b.client("http", true).Get(pkg)
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(res.Body)
				if string(text) != "answer 1" || err != nil || res.Header.Get("Age") == "" ||
					res.ContentLength != int64(len("answer 1")) {
					t.Error(string(text), err, res.Header, res.ContentLength)
				}
				res.Body.Close()
			})
		}
	}
	wait.Wait()
	require.EqualValues(t, 1, w.asked.Load())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	// What was kept is no way around the rules.
	require.NoError(t, two.gate.SetRules(nil, nil))
	res, err := two.client("http", true).Get(strings.ReplaceAll(pkg, "https", "http"))
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	res.Body.Close()
}

// TestCacheKeeps checks what is kept, and who gets it.
func TestCacheKeeps(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	b := w.box(t, Cache{Dir: t.TempDir()})
	for _, c := range []struct {
		url    string
		header []string // of both requests
		kept   bool
	}{
		{pkg, nil, true},
		{strings.Replace(pkg, "https", "http", 1), nil, true},
		{pkg + "?a=1", nil, true},
		{"https://a.test/x/Cache-Control=max-age=\"60\"", nil, true},
		{"https://a.test/x/Cache-Control=max-age=0, s-maxage=60", nil, true},
		{"https://a.test/x/Cache-Control=max-age=60/Vary=Accept", nil, true},
		{"https://a.test/x/Date=Mon, 02 Jan 2006 15:04:05 GMT/" +
			"Expires=Mon, 02 Jan 2006 16:04:05 GMT", nil, true},
		{pkg + "?b", []string{"Accept", "text/html"}, true},
		{"https://a.test/x", nil, false},
		{"https://a.test/x/Cache-Control=max-age=60/Cache-Control=max-age=0", nil, false},
		{"https://a.test/x/Cache-Control=max-age=60, s-maxage=0", nil, false},
		{"https://a.test/x/Cache-Control=max-age=60, no-store", nil, false},
		{"https://a.test/x/Cache-Control=max-age=60, Private", nil, false},
		{"https://a.test/x/Cache-Control=no-cache=\"x\", max-age=60", nil, false},
		{"https://a.test/x/Cache-Control=max-age=60s", nil, false},
		{"https://a.test/x/Cache-Control=max-age=60/Age=60", nil, false},
		{"https://a.test/x/Cache-Control=immutable", nil, false},
		{"https://a.test/x/Expires=0", nil, false},
		{pkg + "/Vary=*", nil, false},
		{pkg + "/Set-Cookie=a=b", nil, false},
		{pkg + "/status", nil, false},
		{pkg + "?c", []string{"Authorization", "Bearer x"}, false},
		{pkg + "?c", []string{"Cookie", "a=b"}, false},
		{pkg + "?c", []string{"Range", "bytes=0-1"}, false},
		{pkg + "?c", []string{"Cache-Control", "max-age=0"}, false},
		{pkg + "?c", []string{"Pragma", "no-cache"}, false},
		{pkg + "?c", []string{"If-None-Match", `"x"`}, false},
	} {
		first, _ := b.get(c.url, c.header...)
		second, cached := b.get(c.url, c.header...)
		require.Equal(t, c.kept, cached, "%s %s", c.url, c.header)
		require.Equal(t, c.kept, first == second, "%s %s", c.url, c.header)
	}
	// Who sends another header might have been given another answer, and may have asked for it.
	_, cached := b.get(pkg, "X-Host", "evil.test")
	require.False(t, cached)
	_, cached = b.get(pkg)
	require.True(t, cached)
	for _, method := range []string{"HEAD", "POST"} {
		r, err := http.NewRequest(method, pkg, nil)
		require.NoError(t, err)
		before := w.asked.Load()
		res, err := b.client("http", true).Do(r)
		require.NoError(t, err)
		res.Body.Close()
		require.Equal(t, before+1, w.asked.Load(), method)
	}
}

// TestCacheSecrets checks that a host of a Secret has nothing kept.
func TestCacheSecrets(t *testing.T) {
	t.Setenv("EGRESS_CACHE_KEY", "the-real-value")
	w := newWarehouse(t)
	b := w.box(t, Cache{Dir: t.TempDir()}, Secret{Env: "API_KEY",
		Value: FromEnv("EGRESS_CACHE_KEY"), Hosts: []string{"https://api.test"}})
	for range 2 {
		_, cached := b.get("https://api.test/x/" + day)
		require.False(t, cached)
	}
	b.get(pkg)
	_, cached := b.get(pkg)
	require.True(t, cached)
}

// TestCacheFaults checks that an answer that is cut, too long or damaged on the disk is not given,
// and that a disk that fails is in nobody's way.
func TestCacheFaults(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	dir := t.TempDir()
	b := w.box(t, Cache{Dir: dir})
	res, err := b.client("http", true).Get(pkg + "?cut")
	require.NoError(t, err)
	_, err = io.ReadAll(res.Body)
	require.Error(t, err)
	res.Body.Close()
	require.Eventually(t, func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == 0
	}, testenv.Limit, time.Millisecond)

	b.get(pkg)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	file := filepath.Join(dir, entries[0].Name())
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	line, body, _ := strings.Cut(string(whole), "\n")
	require.Equal(t, "answer 2", body)
	for _, text := range []string{"", line, line[:20], "{}\n" + body, "\x00\n", strings.Repeat("x",
		mostHeader+100),
		strings.Replace(line, `"Until":"2`, `"Until":"1`, 1) + "\n" + body,
		strings.Replace(line, `"From":"2`, `"From":"3`, 1) + "\n" + body} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, cached := b.get(pkg)
		require.False(t, cached, "%.60q", text)
		_, cached = b.get(pkg)
		require.True(t, cached, "it is replaced")
	}
	require.NoError(t, os.RemoveAll(dir))
	for range 2 {
		_, cached := b.get(pkg)
		require.False(t, cached)
	}
}

// TestCacheBytes checks that the cache holds no more than it may, and loses what was not asked for
// the longest.
func TestCacheBytes(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.mux.HandleFunc("/big/", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=60")
		n := 50 << 10
		if r.URL.Query().Has("huge") {
			n *= 3
		}
		_, _ = rw.Write(make([]byte, n))
	})
	dir := t.TempDir()
	old := filepath.Join(dir, begunPrefix+"1")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*mostBegun)))
	b := w.box(t, Cache{Dir: dir, Bytes: 1 << 20})
	require.NoFileExists(t, old)
	used := func() (size int64) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			info, err := entry.Info()
			require.NoError(t, err)
			size += onDisk(info)
			// each is older than the next
			require.NoError(t, os.Chtimes(filepath.Join(dir, entry.Name()), time.Time{},
				info.ModTime().Add(-time.Minute)))
		}
		return size
	}
	for i := range 30 {
		b.get(fmt.Sprintf("https://a.test/big/%d", i))
		_, cached := b.get("https://a.test/big/0")
		require.True(t, cached, "it is asked for each time: %d", i)
		require.LessOrEqual(t, used(), int64(1<<20))
	}
	_, cached := b.get("https://a.test/big/1")
	require.False(t, cached)
	for range 2 {
		_, cached = b.get("https://a.test/big/?huge")
		require.False(t, cached)
	}
	again := w.box(t, Cache{Dir: dir, Bytes: 1 << 20})
	require.Equal(t, used(), again.gate.shelf.used)

	within := os.Args[0] + "/x/y" // a file
	for says, c := range map[string]Cache{"Dir: it is missing": {},
		"Bytes: -1 is negative": {Dir: dir, Bytes: -1}, "Dir: make " + within: {Dir: within}} {
		_, err := New(Config{Cache: &c})
		require.ErrorContains(t, err, "egress: Config.Cache."+says)
	}
}
