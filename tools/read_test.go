package tools

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pictureOf returns a picture in a format.
func pictureOf(t testing.TB, format string, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	i := image.NewGray(image.Rect(0, 0, width, height))
	require.NoError(t, map[string]func() error{
		"png":  func() error { return png.Encode(&b, i) },
		"jpeg": func() error { return jpeg.Encode(&b, i, nil) },
		"gif":  func() error { return gif.Encode(&b, i, nil) },
	}[format]())
	return b.Bytes()
}

// What is no text is named, and what is text is shown whatever its encoding.
func TestReadKinds(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Files(box.Files(), Config{}))
	read := func(content string) string {
		t.Helper()
		require.NoError(t, box.Files().WriteFile(t.Context(), "f", []byte(content), 0o644))
		r := do(t, set, "read", "path", "f")
		require.NotContains(t, r.Text, "\x00")
		require.Empty(t, r.Images)
		return r.Text
	}
	for _, c := range []struct{ content, want string }{
		{"\x7fELF\x02\x01\x00\x00", "error: f is a binary file (an ELF program or library, 8 " +
			"bytes), which has no text to show: use a program for files of this kind\n"},
		{"PK\x03\x04\x00\x00", "error: f is a binary file (application/zip, 6 bytes), "},
		{"%PDF-1.7\n", "error: f is a binary file (application/pdf, 9 bytes), "},
		{"SQLite format 3\x00", "(an SQLite database, 16 bytes)"},
		{"a\x00b", "(of an unknown kind, 3 bytes)"},
		{"\xff\xfe\x00\x00a\x00\x00\x00", "(text in UTF-32, 8 bytes)"},
		{"\xff\xfea\x00\x00\x00", "(of an unknown kind, 6 bytes)"},
		{"\xff\xfea\x00\r\x00\n\x00\xfc\x00", "     1\ta\n     2\tü\n"},
		{"\xfe\xff\x00a\x00\n\xd8=\xde\x00", "     1\ta\n     2\t😀\n"},
		{"\xff\xfe", "[the file is empty]\n"},
		{"\xef\xbb\xbfa\r\nb\r\n", "     1\ta\n     2\tb\n"},
		{"\xfcber\x1b[1m\b\n", "     1\t\ufffdber\x1b[1m\b\n"},
	} {
		require.Contains(t, read(c.content), c.want)
	}
	require.Contains(t, read(strings.Repeat("a\n", sniffSize)+"b\x00c\n"), "more lines follow")
	require.Equal(t, "  8193\tb\ufffdc\n", text(t, set, "read", "path", "f", "line", sniffSize+1))
	program, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, refused(t, set, "read", "path", program), " is a binary file (")
}

func TestReadPictures(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Files(box.Files(), Config{}))
	write := func(content []byte) {
		t.Helper()
		require.NoError(t, box.Files().WriteFile(t.Context(), "f", content, 0o644))
	}
	for _, format := range []string{"png", "jpeg", "gif"} {
		content := pictureOf(t, format, 30, 20)
		write(content)
		r := do(t, set, "read", "path", "f")
		require.Contains(t, r.Text, "[f is a picture (image/"+format+", ")
		require.Equal(t, []Image{{MIME: "image/" + format, Data: content}}, r.Images)
	}
	write(pictureOf(t, "png", maxImageSide+1, 1))
	require.Equal(t, "error: f is a picture that cannot be shown: it has 8001 × 1 pixels, and a "+
		"side may have at most 8000: scale it down\n", refused(t, set, "read", "path", "f"))
	for kind, c := range webPs {
		begin := "RIFF\x24\x00\x00\x00WEBP" + kind + "\x18\x00\x00\x00"
		fits := begin + c.fits + strings.Repeat("\x00", 20)
		write([]byte(fits))
		require.Equal(t, []Image{{MIME: "image/webp", Data: []byte(fits)}},
			do(t, set, "read", "path", "f").Images, kind)
		write([]byte(begin + c.large + strings.Repeat("\x00", 20)))
		require.Contains(t, refused(t, set, "read", "path", "f"),
			"cannot be shown: it has 16 × 8001 pixels, and a side may have at most 8000", kind)
		write([]byte(begin + c.fits[:4]))
		require.Contains(t, refused(t, set, "read", "path", "f"), "cannot be shown: it is broken: ",
			kind)
	}
	content := pictureOf(t, "png", 1, 1)
	write(content[:20])
	require.Contains(t, refused(t, set, "read", "path", "f"), "cannot be shown: it is broken: ")
	write(append(content, make([]byte, maxImageSize)...))
	require.Contains(t, refused(t, set, "read", "path", "f"),
		"bytes, and may have at most 3932160: scale it down")
}

// webPs are the begins of WebPs, by the kind of their first chunk: of 16 × 8000 pixels, and of 16 ×
// 8001.
var webPs = map[string]struct{ fits, large string }{
	"VP8 ": {"\x30\x01\x00\x9d\x01\x2a\x10\x00\x40\x5f",
		"\x30\x01\x00\x9d\x01\x2a\x10\x00\x41\x5f"},
	"VP8L": {"\x2f\x0f\xc0\xcf\x07", "\x2f\x0f\x00\xd0\x07"},
	"VP8X": {"\x10\x00\x00\x00\x0f\x00\x00\x3f\x1f\x00",
		"\x10\x00\x00\x00\x0f\x00\x00\x40\x1f\x00"},
}
