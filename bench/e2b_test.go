//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/e2bbox"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/linktest"
	"github.com/sandshell/sandshell/sandbox"
)

// BenchmarkE2B measures what a client of E2B's API waits for, against the server of package
// service/e2b on this machine. The floor is the same call of the Sandbox behind it.
func BenchmarkE2B(b *testing.B) {
	engine(b)
	g := e2btest.Start(b, nil)
	made := g.New(b, e2b.NewSandbox{TemplateID: "base"})
	box, err := g.Service.OpenRunning(b.Context(), made.SandboxID)
	noError(b, err)
	c := g.Client(made)
	content := bytes.Repeat([]byte("x"), 1<<10)
	noError(b, box.Files().WriteFile(b.Context(), "/tmp/x", content, 0o644))
	execute(b, box, "mkdir /tmp/list && touch /tmp/list/$(seq -s ' /tmp/list/' 100)")

	ctx := b.Context()
	for _, m := range []struct {
		name        string
		floor, ours func() error
	}{
		{"Run", func() error {
			_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"/bin/bash", "-l", "-c", ":"}})
			return err
		}, func() error { return runByE2B(ctx, c) }},
		{"ReadFile", func() error {
			_, err := box.Files().ReadFile(ctx, "/tmp/x", 0)
			return err
		}, func() error { return fileByE2B(ctx, g.URL, made, http.MethodGet, nil) }},
		{"WriteFile", func() error {
			return box.Files().WriteFile(ctx, "/tmp/x", content, 0o644)
		}, func() error { return fileByE2B(ctx, g.URL, made, http.MethodPost, content) }},
		{"List100", func() error {
			list, err := box.Files().ReadDir(ctx, "/tmp/list")
			return hasMany(len(list), err)
		}, func() error {
			var list e2b.ListDirResponse
			err := c.Call(ctx, e2b.FilesService+"ListDir",
				&e2b.ListDirRequest{Path: "/tmp/list", Depth: 1}, &list)
			return hasMany(len(list.Entries), err)
		}},
	} {
		b.Run(m.name, func(b *testing.B) {
			comparison{rounds: 20, batch: 10,
				floor: func() { noError(b, m.floor()) },
				ours:  func() { noError(b, m.ours()) },
			}.run(b)
		})
	}
}

func hasMany(entries int, err error) error {
	if err == nil && entries != 100 {
		err = fmt.Errorf("%d entries", entries)
	}
	return err
}

// runByE2B runs ":" as commands.run of E2B's SDKs does.
func runByE2B(ctx context.Context, c *e2b.Client) error {
	no := false
	s, err := c.Stream(ctx, e2b.ProcessService+"Start", &e2b.StartRequest{Stdin: &no,
		Process: &e2b.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", ":"}}})
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		var m e2b.ProcessResponse
		if err := s.Next(&m); err != nil {
			return err
		}
		if m.Event != nil && m.Event.End != nil {
			return nil
		}
	}
}

// fileByE2B reads or writes the file /tmp/x.
func fileByE2B(ctx context.Context, base string, s *e2b.Sandbox, method string,
	content []byte) error {
	r, err := http.NewRequestWithContext(ctx, method,
		base+"/files?"+url.Values{"path": {"/tmp/x"}}.Encode(), bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("E2b-Sandbox-Id", s.SandboxID)
	r.Header.Set("X-Access-Token", s.EnvdAccessToken)
	r.Header.Set("Content-Type", "application/octet-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err = io.Copy(io.Discard, answer.Body); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s", method, answer.Status)
	}
	return err
}

// BenchmarkE2BCopy copies 20 MiB of random bytes to and from an E2BBox at the other end of a link
// whose round trip takes 50 ms: one of 100 Mbit/s, and one that carries whatever is sent, where a
// copy waits for windows of SSH (2 MiB) and not for the link. The floor is one HTTP request with
// the same bytes on that link.
func BenchmarkE2BCopy(b *testing.B) {
	engine(b)
	const size = 20 << 20
	g := e2btest.Start(b, nil)
	data := make([]byte, size)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Write(data)
			return
		}
		io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(plain.Close)
	here, back := filepath.Join(tree(b, 1, size), "x"), filepath.Join(b.TempDir(), "back")
	for _, link := range []struct {
		name     string
		rate     int // bytes per second
		maxRatio float64
	}{
		{"100Mbit", 100e6 / 8, 1.3}, {"Unlimited", 0, 0},
	} {
		far := func(url string) string {
			return "http://" + linktest.Start(b, linktest.Config{RoundTrip: roundTrip,
				Rate: link.rate, Server: strings.TrimPrefix(url, "http://")}).Address
		}
		url, plainURL := far(g.URL), far(plain.URL)
		box, err := e2bbox.New(b.Context(), e2bbox.Config{APIKey: e2btest.Key, APIURL: url,
			SandboxURL: url})
		noError(b, err)
		b.Cleanup(func() { noError(b, box.Close()) })
		transport := &http.Transport{DisableCompression: true}
		b.Cleanup(transport.CloseIdleConnections)
		request := func(b *testing.B, method string, body io.Reader) {
			r, err := http.NewRequestWithContext(b.Context(), method, plainURL, body)
			noError(b, err)
			answer, err := transport.RoundTrip(r)
			noError(b, err)
			defer answer.Body.Close()
			_, err = io.Copy(io.Discard, answer.Body)
			noError(b, err)
		}
		b.Run("To/"+link.name, func(b *testing.B) {
			comparison{rounds: 5, bytes: size, maxRatio: link.maxRatio,
				floor: func() { request(b, http.MethodPost, bytes.NewReader(data)) },
				ours:  func() { noError(b, box.CopyTo(b.Context(), here, "/tmp/x")) },
			}.run(b)
		})
		b.Run("From/"+link.name, func(b *testing.B) {
			noError(b, box.CopyTo(b.Context(), here, "/tmp/x"))
			comparison{rounds: 5, bytes: size, maxRatio: link.maxRatio,
				floor: func() { request(b, http.MethodGet, nil) },
				ours:  func() { noError(b, box.CopyFrom(b.Context(), "/tmp/x", back)) },
			}.run(b)
		})
	}
}
