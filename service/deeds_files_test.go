package service

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// raw asks for a deed, and returns the answer, which is no JSON.
func (c deedsClient) raw(request, body string, status int, header ...string) (*http.Response,
	string) {
	c.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(c.Context(), method, c.url+"/sandboxes/one/"+path,
		strings.NewReader(body))
	require.NoError(c, err)
	r.Header.Set("User", "me")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(c, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	require.NoError(c, err)
	require.Equal(c, status, res.StatusCode, "%s: %s", request, got)
	require.NoError(c, c.check(method, r.URL.EscapedPath(), status, res.Header.Get("Content-Type"),
		got), request)
	return res, string(got)
}

// at returns a path in a directory as a query.
func at(parts ...string) string { return "?path=" + url.QueryEscape(filepath.Join(parts...)) }

type fileInfo struct {
	Name, Kind, Mode string
	Size             int64 `json:"size_bytes"`
}

func (c deedsClient) testFiles() {
	dir := c.TempDir()
	var info fileInfo
	c.do("PUT files"+at(dir, "new/a")+"&mode=0640&parents=true", "hello\n", 200, &info)
	require.Equal(c, fileInfo{"a", "file", "0640", 6}, info)
	res, got := c.raw("GET files"+at(dir, "new/a"), "", 200)
	require.Equal(c, "hello\n", got)
	require.Equal(c, "nosniff", res.Header.Get("X-Content-Type-Options"))
	require.Equal(c, "attachment", res.Header.Get("Content-Disposition"),
		"no browser takes it for a page")
	_, got = c.raw("GET files"+at(dir, "new/a"), "", 206, "Range", "bytes=1-2")
	require.Equal(c, "el", got)
	c.raw("GET files"+at(dir, "new/a"), "", 416, "Range", "bytes=10-")
	_, got = c.raw("GET files"+at("/proc/version"), "", 200)
	require.NotEmpty(c, got, "a file without a size")
	c.do("PUT files"+at(dir, "new/a"), "", 200, &info)
	require.Equal(c, fileInfo{"a", "file", "0640", 0}, info, "it keeps its permissions")
	c.execute("cd " + dir)
	c.raw("GET files"+at("new/a"), "", 200)

	c.do("POST files/mkdir", asJSON(map[string]any{"path": dir + "/x/y", "mode": "0700"}), 200, nil)
	c.do("GET files/stat"+at(dir, "x/y"), "", 200, &info)
	require.Equal(c, "directory 0700", info.Kind+" "+info.Mode)
	c.do("POST files/move", asJSON(map[string]any{"from": dir + "/new/a", "to": dir + "/b"}), 200,
		nil)
	require.NoError(c, os.Symlink("b", dir+"/link"))
	var list struct {
		Items []fileInfo
		Next  *string `json:"next_page_id"`
	}
	names := func() (names []string) {
		for _, i := range list.Items {
			names = append(names, i.Name+" "+i.Kind)
		}
		return names
	}
	c.do("GET files/list"+at(dir)+"&limit=3", "", 200, &list)
	require.Equal(c, []string{"b file", "link link", "new directory"}, names())
	require.Equal(c, "new", *list.Next)
	c.do("GET files/list"+at(dir)+"&limit=3&page_id=new", "", 200, &list)
	require.Equal(c, []string{"x directory"}, names())
	require.Nil(c, list.Next)

	c.fails("DELETE files"+at(dir, "x"), "", 409, "not_empty: ")
	c.do("DELETE files"+at(dir, "x")+"&recursive=true", "", 200, nil)
	c.do("DELETE files"+at(dir, "b"), "", 200, nil)
	for request, want := range map[string]string{
		"GET files" + at(dir, "none"):           "404 not_found: ",
		"DELETE files" + at(dir, "none"):        "404 not_found: ",
		"GET files/stat" + at(dir, "none"):      "404 not_found: ",
		"GET files/list" + at(dir, "none"):      "404 not_found: ",
		"PUT files" + at(dir, "none/a"):         "404 not_found: ",
		"GET files/archive" + at(dir, "none"):   "404 not_found: ",
		"GET files" + at(dir):                   "409 wrong_kind: ",
		"PUT files" + at(dir):                   "409 wrong_kind: ",
		"PUT files" + at(dir) + "&mode=999":     "422 invalid: mode: \"999\"",
		"PUT files":                             "422 invalid: path: it is missing",
		"GET files":                             "422 invalid: path: it is missing",
		"DELETE files":                          "422 invalid: path: it is missing",
		"GET files/stat":                        "422 invalid: path: it is missing",
		"GET files/list":                        "422 invalid: path: it is missing",
		"GET files/list" + at("/") + "&limit=0": "422 invalid: limit: 0",
		"GET files?pth=x":                       `422 invalid: query: there is no parameter "pth"`,
		"POST files/mkdir":                      "422 invalid: path: it is missing",
		"POST files/move":                       "422 invalid: from, to: ",
	} {
		status := map[string]int{"404": 404, "409": 409, "422": 422}[want[:3]]
		c.fails(request, "", status, want[4:])
	}
	c.fails("POST files/move", asJSON(map[string]any{"from": dir + "/no", "to": dir + "/b"}), 404,
		"not_found: ")
}

// testLarge writes files that do not fit into memory, and one that is too large.
func (c deedsClient) testLarge() {
	dir := c.TempDir()
	text := strings.Repeat("0123456789abcdef", 1<<16+1)
	var info fileInfo
	c.do("PUT files"+at(dir, "a/large")+"&parents=true&mode=0600", text, 200, &info)
	require.Equal(c, fileInfo{"large", "file", "0600", int64(len(text))}, info)
	require.NoError(c, os.Chmod(dir+"/a/large", 0o644))
	c.do("PUT files"+at(dir, "a/large")+"&mode=0600", text+"!", 200, &info)
	require.Equal(c, "0644", info.Mode)
	_, got := c.raw("GET files"+at(dir, "a/large"), "", 200)
	require.True(c, got == text+"!")
	c.fails("PUT files"+at(dir, "a"), text, 409, "wrong_kind: ")
	for _, path := range []string{"files", "files/archive"} {
		c.fails("PUT "+path+at(dir, "more"), strings.Repeat(text, 3), 413,
			"too_large: the body has more than 2097152 bytes")
	}
	_, err := os.Stat(dir + "/more/" + "more")
	require.ErrorIs(c, err, os.ErrNotExist)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "sandshell-upload-*"))
	require.NoError(c, err)
	require.Empty(c, left)
}

func (c deedsClient) testArchives() {
	dir := c.TempDir()
	require.NoError(c, os.Mkdir(dir+"/from", 0o755))
	require.NoError(c, os.WriteFile(dir+"/from/a", []byte("hello"), 0o600))
	res, archive := c.raw("GET files/archive"+at(dir, "from"), "", 200)
	require.Equal(c, "application/x-tar", res.Header.Get("Content-Type"))
	listed := exec.CommandContext(c.Context(), "tar", "-tf", "-")
	listed.Stdin = strings.NewReader(archive)
	names, err := listed.Output()
	require.NoError(c, err)
	require.Equal(c, "./\n./a\n", string(names))
	c.do("PUT files/archive"+at(dir, "to/there"), archive, 200, nil)
	copied, err := os.ReadFile(dir + "/to/there/a")
	require.NoError(c, err)
	require.Equal(c, "hello", string(copied))
	c.fails("GET files/archive?path=x", "", 422, `invalid: path: "x": write the absolute path`)
	c.fails("PUT files/archive?path=x", "", 422, `invalid: path: "x": write the absolute path`)
	c.fails("PUT files/archive"+at(dir, "to"), "no tar", 422, "invalid: body: tar: ")
	c.fails("GET files/archive"+at(dir, "from/a"), "", 409, "wrong_kind: ")
	c.fails("PUT files/archive"+at(dir, "from/a"), archive, 409, "")
	var all bytes.Buffer
	all.WriteString(archive)
	require.Zero(c, all.Len()%512)
}

// testDenied works in a box whose user may use no files, and which has no tar.
func (c deedsClient) testDenied() {
	for request, body := range map[string]string{"GET files?path=/x": "", "PUT files?path=/x": "",
		"DELETE files?path=/x": "", "GET files/stat?path=/x": "", "GET files/list?path=/x": "",
		"POST files/mkdir": `{"path":"/x"}`, "POST files/move": `{"from":"/x","to":"/y"}`,
		"GET files/archive?path=/x": "", "PUT files/archive?path=/x": ""} {
		c.fails(request, body, 403, "permission: ")
	}
	c.fails("GET files/archive?path=/allowed", "", 501, "unsupported: the box has no tar")
	c.fails("PUT files/archive?path=/allowed", "", 501, "unsupported: the box has no tar")
}
