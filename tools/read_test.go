package tools

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
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

// TestReadKinds shows that read names the kind of a binary file, and shows text in UTF-8 and
// UTF-16.
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
			"bytes), which has no text to show: run a program for files of this kind\n"},
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
	require.Equal(t, "  8193\tb\ufffdc\n[a \ufffd stands for bytes that are no UTF-8: no text for "+
		"`edit` can have them]\n", text(t, set, "read", "path", "f", "line", sniffSize+1))
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
	content := pictureOf(t, "png", 1, 1)
	write(content[:20])
	require.Contains(t, refused(t, set, "read", "path", "f"), "cannot be shown: it is broken: ")
	content = pictureOf(t, "jpeg", 900, 900)
	write(content[:len(content)/2])
	require.Contains(t, refused(t, set, "read", "path", "f"), "cannot be shown: it is broken: ",
		"its header is right")
	for _, webP := range webPs {
		content, err := base64.StdEncoding.DecodeString(webP)
		require.NoError(t, err)
		write(content)
		r := do(t, set, "read", "path", "f")
		require.Equal(t, "[f is a picture (image/webp, 1 × 1 pixels)]\n", r.Text)
		require.Equal(t, []Image{{MIME: "image/webp", Data: content}}, r.Images)
	}
}

// webPs are pictures of one pixel: with and without loss.
var webPs = []string{"UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=",
	"UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="}

// TestLargePictures shows that pictures are scaled down to what models see, and that the header is
// enough to refuse one that takes too much memory.
func TestLargePictures(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Files(box.Files(), Config{}))
	read := func(content []byte) *Reply {
		t.Helper()
		require.NoError(t, box.Files().WriteFile(t.Context(), "f", content, 0o644))
		return do(t, set, "read", "path", "f")
	}
	for format, shown := range map[string]string{"png": "png", "jpeg": "jpeg", "gif": "png"} {
		r := read(pictureOf(t, format, 4100, 2050))
		require.Equal(t, "[f is a picture (image/"+format+", 4100 × 2050 pixels), shown with 2000 "+
			"× 1000]\n", r.Text)
		require.Equal(t, "image/"+shown, r.Images[0].MIME)
		c, _, err := image.DecodeConfig(bytes.NewReader(r.Images[0].Data))
		require.NoError(t, err)
		require.Equal(t, image.Pt(2000, 1000), image.Pt(c.Width, c.Height))
	}
	r := read(pictureOf(t, "png", 1, 8001))
	require.Contains(t, r.Text, "1 × 8001 pixels), shown with 1 × 2000]")

	noise := image.NewNRGBA(image.Rect(0, 0, 1200, 1200)) // a PNG of it is larger than a model sees
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, noise))
	require.Greater(t, b.Len(), maxImageSize)
	r = read(b.Bytes())
	require.Contains(t, r.Text, "1200 × 1200 pixels), shown with 600 × 600]")
	require.LessOrEqual(t, len(r.Images[0].Data), maxImageSize)

	for name, bomb := range map[string][]byte{
		"png": bombPNG(t, 60000, 60000),
		"gif": []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"),
		"webp": []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\xff\xff\xff\x0f" +
			strings.Repeat("\x00", 9)),
	} {
		require.NoError(t, box.Files().WriteFile(t.Context(), "f", bomb, 0o644))
		require.Regexp(t, `^error: f is a picture that cannot be shown: it has \d+ × \d+ pixels, `+
			"and may have at most 32 million: use a program that scales it down\n$",
			refused(t, set, "read", "path", "f"), name)
	}
	text(t, combined(t, Shell(box, patient)), "run", "command",
		`printf '\x89PNG\r\n\x1a\n' >f; truncate -s 33M f`)
	require.Contains(t, refused(t, set, "read", "path", "f"),
		"it has 34603008 bytes, and may have at most 33554432")
}

// bombPNG returns a PNG whose header promises more pixels than it has.
func bombPNG(t testing.TB, width, height uint32) []byte {
	content := pictureOf(t, "png", 1, 1)
	header := content[12:29] // its name, and 13 bytes
	binary.BigEndian.PutUint32(header[4:], width)
	binary.BigEndian.PutUint32(header[8:], height)
	binary.BigEndian.PutUint32(content[29:], crc32.ChecksumIEEE(header))
	return content
}

// TestPicturesOfReply shows that all pictures of a reply have a bound together.
func TestPicturesOfReply(t *testing.T) {
	t.Parallel()
	content := pictureOf(t, "png", 3000, 1)
	r := &Reply{}
	require.Equal(t, "[a picture of 3000 × 1 pixels is shown with 2000 × 1]\n", r.show(content))
	r.Images = []Image{{Data: make([]byte, maxImagesSize)}}
	require.Equal(t, "[a picture is not shown: the pictures of a reply have at most 15728640 "+
		"bytes]\n", r.show(content))
	require.Len(t, r.Images, 1)
	require.Contains(t, r.show([]byte("text")), "it is not a PNG, JPEG, GIF or WebP")
}
