package e2b_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	gateway "github.com/sandshell/sandshell/service/e2b"
)

// file calls a method of the file service, and requires that code; "" means no error.
func file(t testing.TB, c *e2b.Client, method string, request, response any, code e2b.Code) {
	t.Helper()
	err := c.Call(within(t), e2b.FilesService+method, request, response)
	if code == "" {
		require.NoError(t, err)
		return
	}
	var e *e2b.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, "%v", err)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "base"}))
	c.Codec = e2b.JSON
	does(t, c, "cd /tmp && mkdir -p d/sub/deep && echo hello >d/f && chmod 640 d/f && "+
		"ln -s sub d/link && echo x >d/sub/g && chown user d/f")
	var got e2b.EntryResponse
	file(t, c, "Stat", &e2b.PathRequest{Path: "/tmp/d/f"}, &got, "")
	require.NotNil(t, got.Entry.ModifiedTime)
	got.Entry.ModifiedTime = nil
	require.Equal(t, &e2b.Entry{Name: "f", Path: "/tmp/d/f", Type: e2b.TypeFile, Size: 6,
		Mode: 0o640, Permissions: "-rw-r-----", Owner: "user", Group: "root"}, got.Entry)
	got = e2b.EntryResponse{}
	file(t, c, "Stat", &e2b.PathRequest{Path: "/tmp/d/link"}, &got, "")
	require.Equal(t, e2b.TypeDirectory, got.Entry.Type)
	require.Equal(t, "/tmp/d/sub", got.Entry.SymlinkTarget)
	file(t, c, "Stat", &e2b.PathRequest{Path: "/tmp/none"}, &got, e2b.NotFound)

	paths := func(depth uint32) (paths []string) {
		var list e2b.ListDirResponse
		file(t, c, "ListDir", &e2b.ListDirRequest{Path: "/tmp/d", Depth: depth}, &list, "")
		for _, e := range list.Entries {
			paths = append(paths, e.Path)
		}
		return paths
	}
	require.Equal(t, []string{"/tmp/d/f", "/tmp/d/link", "/tmp/d/sub"}, paths(0))
	require.Equal(t, []string{"/tmp/d/f", "/tmp/d/link", "/tmp/d/sub", "/tmp/d/sub/deep",
		"/tmp/d/sub/g"}, paths(2))
	file(t, c, "ListDir", &e2b.ListDirRequest{Path: "/tmp/d/f"}, &e2b.ListDirResponse{},
		e2b.InvalidArgument)

	got = e2b.EntryResponse{}
	file(t, c, "MakeDir", &e2b.PathRequest{Path: "~/made/by"}, &got, "")
	require.Equal(t, "/root/made/by", got.Entry.Path)
	file(t, c, "MakeDir", &e2b.PathRequest{Path: "made"}, &got, e2b.AlreadyExists)
	file(t, c, "MakeDir", &e2b.PathRequest{Path: "/tmp/d/f"}, &got, e2b.InvalidArgument)
	got = e2b.EntryResponse{}
	file(t, c, "Move", &e2b.MoveRequest{Source: "/tmp/d/f", Destination: "/tmp/new/f"}, &got, "")
	require.Equal(t, "/tmp/new/f", got.Entry.Path)
	file(t, c, "Move", &e2b.MoveRequest{Source: "/tmp/d/f", Destination: "/x"}, &got, e2b.NotFound)
	file(t, c, "Remove", &e2b.PathRequest{Path: "/tmp/d"}, &e2b.Empty{}, "")
	file(t, c, "Remove", &e2b.PathRequest{Path: "/tmp/d"}, &e2b.Empty{}, "")
	require.Equal(t, "new\n", does(t, c, "ls /tmp").stdout.String())
}

// TestUsers works as a user who is not the box's own.
func TestUsers(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "base"})
	c := g.Client(box)
	c.User = "user"
	require.Equal(t, "user\n/home/user\n", does(t, c, "id -un; pwd").stdout.String())
	var got e2b.EntryResponse
	file(t, c, "MakeDir", &e2b.PathRequest{Path: "a/b"}, &got, "")
	require.Equal(t, "user", got.Entry.Owner)
	require.Equal(t, 200, send(t, g, box, "POST", url.Values{"path": {"a/c/f"},
		"username": {"user"}}, "application/octet-stream", strings.NewReader("x"), nil))
	require.Equal(t, "user /home/user/a\nuser /home/user/a/b\nuser /home/user/a/c\n"+
		"user /home/user/a/c/f\n", does(t, c,
		"stat -c '%U %n' ~/a ~/a/b ~/a/c ~/a/c/f").stdout.String())
	c.User = "nobody-here"
	file(t, c, "Stat", &e2b.PathRequest{Path: "/"}, &got, e2b.Unauthenticated)
}

// send sends a request for /files. If answer is not nil, it gets the body.
func send(t testing.TB, g *e2btest.Gateway, box *e2b.Sandbox, method string, q url.Values,
	kind string, body io.Reader, answer *string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), method, g.URL+"/files?"+q.Encode(), body)
	require.NoError(t, err)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if box != nil {
		r.Header.Set("E2b-Sandbox-Id", box.SandboxID)
		r.Header.Set("X-Access-Token", box.EnvdAccessToken)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := g.Control.HTTP.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if answer != nil {
		*answer = string(text)
	}
	return resp.StatusCode
}

// TestTransfer writes and reads files over HTTP: as a body, as a form, compressed and large.
func TestTransfer(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, func(c *gateway.Config) { c.MaxUpload = 4 << 20 })
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	at := func(name string) url.Values { return url.Values{"path": {name}} }
	large := strings.Repeat("0123456789abcdef", 3<<16)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte("zipped"))
	z.Close()
	for _, c := range []struct {
		name, body, want string
		headers          []string
	}{
		{"/tmp/a", "", "", nil}, {"/tmp/b c/d", "small", "small", nil},
		{"/tmp/b", large, large, nil},
		{"/tmp/z", zipped.String(), "zipped", []string{"Content-Encoding", "gzip"}},
	} {
		var answer string
		require.Equal(t, 200, send(t, g, box, "POST", at(c.name), octets,
			strings.NewReader(c.body), &answer, c.headers...), answer)
		var files []map[string]string // it has no metadata
		require.NoError(t, json.Unmarshal([]byte(answer), &files))
		require.Equal(t, c.name, files[0]["path"])
		require.Equal(t, "file", files[0]["type"])
		require.Equal(t, 200, send(t, g, box, "GET", at(c.name), "", nil, &answer))
		require.True(t, c.want == answer, "%s", c.name)
	}
	var answer string
	require.Equal(t, 206, send(t, g, box, "GET", at("/tmp/b c/d"), "", nil, &answer, "Range",
		"bytes=1-2"))
	require.Equal(t, "ma", answer)

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, name := range []string{"/tmp/m/1", "/tmp/m/2"} {
		part, err := w.CreateFormFile("file", name)
		require.NoError(t, err)
		part.Write([]byte("of " + name))
	}
	w.Close()
	require.Equal(t, 200, send(t, g, box, "POST", nil, w.FormDataContentType(), &form, &answer),
		answer)
	require.Equal(t, 200, send(t, g, box, "GET", at("/tmp/m/2"), "", nil, &answer))
	require.Equal(t, "of /tmp/m/2", answer)

	require.Equal(t, 404, send(t, g, box, "GET", at("/none"), "", nil, &answer))
	require.Equal(t, 400, send(t, g, box, "GET", at("/tmp"), "", nil, &answer))
	require.Equal(t, 400, send(t, g, box, "POST", at("/tmp"), octets, strings.NewReader("x"),
		&answer))
	require.Equal(t, 415, send(t, g, box, "POST", at("/x"), "text/plain", strings.NewReader("x"),
		&answer))
	require.Equal(t, 413, send(t, g, box, "POST", at("/x"), octets,
		strings.NewReader(large+large), &answer))
	does(t, g.Client(box), "dd if=/dev/zero of=/dev/shm/all bs=1M 2>/dev/null; true")
	for _, body := range []string{large, large[:64<<10]} { // by each way of an upload
		require.Equal(t, 507, send(t, g, box, "POST", at("/dev/shm/more"), octets,
			strings.NewReader(body), &answer))
		require.Contains(t, answer, "no space left")
	}
}

// TestSigned uses addresses that are signed with the sandbox's token, and name no sandbox.
func TestSigned(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	g.New(t, e2b.NewSandbox{TemplateID: "small"})
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	var answer string
	signed := func(deed, path, end string) url.Values {
		return url.Values{"path": {path}, "username": {"root"}, "signature_expiration": {end},
			"signature": {gateway.Sign(path, deed, "root", box.EnvdAccessToken, end)}}
	}
	const later, past = "4000000000", "1000000000"
	require.Equal(t, 200, send(t, g, nil, "POST", signed("write", "/tmp/s", later),
		"application/octet-stream", strings.NewReader("text"), &answer), answer)
	require.Equal(t, 200, send(t, g, nil, "GET", signed("read", "/tmp/s", later), "", nil,
		&answer))
	require.Equal(t, "text", answer)
	require.Equal(t, 401, send(t, g, nil, "GET", signed("write", "/tmp/s", later), "", nil,
		&answer))
	require.Equal(t, 401, send(t, g, nil, "GET", signed("read", "/tmp/s", past), "", nil,
		&answer))
	require.Contains(t, answer, "expired")
	changed := signed("read", "/tmp/s", later)
	changed.Set("path", "/etc/passwd")
	require.Equal(t, 401, send(t, g, nil, "GET", changed, "", nil, &answer))
	require.Equal(t, 401, send(t, g, box, "GET", url.Values{"path": {"/tmp/s"}}, "", nil,
		&answer, "X-Access-Token", "wrong"))
}

// TestWatch watches a directory in both ways.
func TestWatch(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "small"}))
	does(t, c, "mkdir /tmp/w")
	dir := &e2b.WatchRequest{Path: "/tmp/w", IncludeEntry: true}
	s, err := c.Stream(within(t), e2b.FilesService+"WatchDir", dir)
	require.NoError(t, err)
	defer s.Close()
	var first e2b.WatchResponse
	require.NoError(t, s.Next(&first))
	require.NotNil(t, first.Start)
	var w e2b.Watcher
	file(t, c, "CreateWatcher", dir, &w, "")

	does(t, c, "cd /tmp/w && echo x >f && chmod 600 f && mv f g && rm g")
	want := []string{"EVENT_TYPE_CREATE f", "EVENT_TYPE_RENAME f", "EVENT_TYPE_CREATE g",
		"EVENT_TYPE_REMOVE g"}
	text := func(e *e2b.FileEvent) string {
		name, _ := e.Type.MarshalJSON()
		return strings.Trim(string(name), `"`) + " " + e.Name
	}
	var streamed []string
	for len(streamed) == 0 || streamed[len(streamed)-1] != want[len(want)-1] {
		var m e2b.WatchResponse
		require.NoError(t, s.Next(&m))
		streamed = append(streamed, text(m.Filesystem))
	}
	require.Subset(t, streamed, append(want, "EVENT_TYPE_WRITE f", "EVENT_TYPE_CHMOD f"))
	var asked []string
	for len(asked) < len(streamed) {
		var events e2b.WatcherEvents
		file(t, c, "GetWatcherEvents", &w, &events, "")
		for _, e := range events.Events {
			asked = append(asked, text(e))
		}
	}
	require.Equal(t, streamed, asked)
	file(t, c, "RemoveWatcher", &w, &e2b.Empty{}, "")
	file(t, c, "GetWatcherEvents", &w, &e2b.WatcherEvents{}, e2b.NotFound)
	file(t, c, "CreateWatcher", &e2b.WatchRequest{Path: "/none"}, &w, e2b.NotFound)
	does(t, c, "mkdir -p /tmp/r/sub")
	below, err := c.Stream(within(t), e2b.FilesService+"WatchDir", &e2b.WatchRequest{
		Path: "/tmp/r", Recursive: true})
	require.NoError(t, err)
	defer below.Close()
	require.NoError(t, below.Next(&e2b.WatchResponse{}))
	does(t, c, "mkdir /tmp/r/sub/deep")
	var m e2b.WatchResponse
	require.NoError(t, below.Next(&m))
	require.Equal(t, &e2b.FileEvent{Name: "sub/deep", Type: e2b.EventCreate}, m.Filesystem)

	gone, err := c.Stream(within(t), e2b.FilesService+"WatchDir", &e2b.WatchRequest{Path: "/none"})
	require.NoError(t, err)
	defer gone.Close()
	var e *e2b.Error
	require.True(t, errors.As(gone.Next(&e2b.WatchResponse{}), &e))
	require.Equal(t, e2b.NotFound, e.Code)
}
