package e2b_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
)

const octets = "application/octet-stream"

// An uploaded is a file in the answer to an upload.
type uploaded struct {
	Name, Type, Path string
	Metadata         map[string]string
}

// TestMetadata uploads files with metadata, and finds it wherever files are described.
func TestMetadata(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "base"})
	c := g.Client(box)
	upload := func(name, content string, headers ...string) (files []uploaded) {
		t.Helper()
		var answer string
		require.Equal(t, 200, send(t, g, box, "POST", url.Values{"path": {name}}, octets,
			strings.NewReader(content), &answer, headers...), answer)
		require.NoError(t, json.Unmarshal([]byte(answer), &files))
		return files
	}
	// stat asks in both forms.
	stat := func(name string) map[string]string {
		t.Helper()
		var first, second e2b.EntryResponse
		c.Codec = e2b.JSON
		file(t, c, "Stat", &e2b.PathRequest{Path: name}, &first, "")
		c.Codec = e2b.Binary
		file(t, c, "Stat", &e2b.PathRequest{Path: name}, &second, "")
		require.Equal(t, first, second)
		return first.Entry.Metadata
	}
	does(t, c, "mkdir /tmp/d && ln -s f /tmp/d/link")
	watch, err := c.Stream(within(t), e2b.FilesService+"WatchDir", &e2b.WatchRequest{
		Path: "/tmp/d", IncludeEntry: true})
	require.NoError(t, err)
	defer watch.Close()
	require.NoError(t, watch.Next(&e2b.WatchResponse{}))

	want := map[string]string{"kind": "a b", "x-y": "", "author": "Me"}
	require.Equal(t, []uploaded{{"f", "file", "/tmp/d/f", want}}, upload("/tmp/d/f", "1",
		"X-Metadata-Kind", "a b", "X-METADATA-X-Y", "", "x-metadata-author", "Me"))
	require.Equal(t, want, stat("/tmp/d/f"))
	require.Equal(t, want, stat("/tmp/d/link"))
	require.Nil(t, stat("/tmp/d"))
	for seen := ""; seen != fmt.Sprint(want); {
		var m e2b.WatchResponse
		require.NoError(t, watch.Next(&m))
		if m.Filesystem.Name == "f" && m.Filesystem.Entry != nil {
			seen = fmt.Sprint(m.Filesystem.Entry.Metadata)
		}
	}
	require.Equal(t, "Me|a b||", does(t, c, `python3 -c 'import os
print(*[os.getxattr("/tmp/d/f", "user.e2b." + n).decode() for n in ("author", "kind", "x-y")],
      sep="|", end="|")'`).stdout.String())

	// What programs have set beside it stays. What is not text is left out.
	does(t, c, `python3 -c 'import os
for n, v in ("e2b.own", b"\xc3\xa4"), ("e2b.bytes", b"\xff"), ("e2b.", b"x"), ("other", b"kept"):
    os.setxattr("/tmp/d/f", "user." + n, v)'`)
	want["own"] = "ä"
	require.Equal(t, want, stat("/tmp/d/f"))
	var moved e2b.EntryResponse
	file(t, c, "Move", &e2b.MoveRequest{Source: "/tmp/d/f", Destination: "/tmp/d/sub/g"}, &moved,
		"")
	require.Equal(t, want, moved.Entry.Metadata)

	// An upload replaces all metadata, also that of a file too large for the memory.
	for _, content := range []string{"short", strings.Repeat("0123456789abcdef", 3<<16)} {
		made := upload("/tmp/d/sub/g", content, "X-Metadata-Only", "this")
		want = map[string]string{"only": "this"}
		require.Equal(t, want, made[0].Metadata)
		require.Equal(t, want, stat("/tmp/d/sub/g"))
		require.Equal(t, "kept\n", does(t, c, `python3 -c 'import os
print(os.getxattr("/tmp/d/sub/g", "user.other").decode())'`).stdout.String())
	}
	var list e2b.ListDirResponse
	file(t, c, "ListDir", &e2b.ListDirRequest{Path: "/tmp/d", Depth: 2}, &list, "")
	found := map[string]map[string]string{}
	for _, e := range list.Entries {
		found[e.Path] = e.Metadata
	}
	require.Equal(t, map[string]map[string]string{"/tmp/d/link": nil, "/tmp/d/sub": nil,
		"/tmp/d/sub/g": want}, found)
	require.Equal(t, []uploaded{{"g", "file", "/tmp/d/sub/g", nil}}, upload("/tmp/d/sub/g", "x"))
	require.Nil(t, stat("/tmp/d/sub/g"))

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, name := range []string{"/tmp/1", "/tmp/2"} {
		_, err := w.CreateFormFile("file", name)
		require.NoError(t, err)
	}
	w.Close()
	require.Equal(t, 200, send(t, g, box, "POST", url.Values{"username": {"user"}},
		w.FormDataContentType(), &form, nil, "X-Metadata-Of", "both"))
	require.Equal(t, map[string]string{"of": "both"}, stat("/tmp/1"))
	require.Equal(t, map[string]string{"of": "both"}, stat("/tmp/2"))
}

// TestMetadataRefused uploads what cannot be kept. Nothing is written then.
func TestMetadataRefused(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	for _, h := range []struct {
		path, name, value, says string
		status                  int
	}{
		{"/tmp/f", "X-Metadata-K", "\u00e4", "printable", 400},
		{"/tmp/f", "X-Metadata-K", "a\tb", "printable", 400},
		{"/tmp/f", "X-Metadata-" + strings.Repeat("k", 247), "", "246", 400},
		{"/tmp/f", "X-Metadata-K", strings.Repeat("v", 4087), "4096", 400},
		{"/proc/self/comm", "X-Metadata-K", "v", "keeps no extended attributes", 501},
		{"/proc/new", "X-Metadata-K", "v", "keeps no extended attributes", 501},
	} {
		var answer string
		require.Equal(t, h.status, send(t, g, box, "POST", url.Values{"path": {h.path}}, octets,
			strings.NewReader("x"), &answer, h.name, h.value), answer)
		require.Contains(t, answer, h.says)
	}
	file(t, g.Client(box), "Stat", &e2b.PathRequest{Path: "/tmp/f"}, &e2b.EntryResponse{},
		e2b.NotFound)
}
