package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

type readArgs struct {
	Path  string `json:"path" jsonschema:"the file"`
	Line  int    `json:"line,omitempty" jsonschema:"the first line to show. Default: 1"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many to show. Default: as many as fit"`
}

func (t *files) read(ctx context.Context, a readArgs) (*Reply, error) {
	if a.Path == "" {
		return nil, errNoPath
	}
	ctx, done := t.withLimit(ctx, "read a smaller file, and no device or pipe")
	defer done()
	f, err := t.files.Open(ctx, a.Path)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%w: use %s", err, toolName(ctx, "list"))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { f.Close() }) // ends a read that blocks, as of a FIFO
	defer stop()
	r, err := t.show(ctx, f, a)
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	return r, err
}

// sniffSize is how many bytes at a file's beginning tell what kind of file it is.
const sniffSize = 8 << 10

// show returns a file's text or, if the file is a picture, the picture.
func (t *files) show(ctx context.Context, f sandbox.File, a readArgs) (*Reply, error) {
	in := bufio.NewReaderSize(f, 64<<10)
	begin, err := in.Peek(sniffSize)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if imageType(begin) != "" {
		return showPicture(f, in, a.Path)
	}
	kind := binaryKind(begin)
	if utf16 := utf16Of(begin); utf16 != nil {
		in = bufio.NewReaderSize(utf16.NewDecoder().Reader(in), 64<<10)
		if begin, err = in.Peek(sniffSize); err != nil && err != io.EOF {
			return nil, err
		}
		kind = binaryKind(begin)
	}
	if kind != "" {
		size := ""
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = fmt.Sprintf(", %d bytes", info.Size())
		}
		return nil, fmt.Errorf("%s is a binary file (%s%s), which has no text to show: run a "+
			"program for files of this kind", a.Path, kind, size)
	}
	if bytes.HasPrefix(begin, markUTF8) {
		if _, err := in.Discard(len(markUTF8)); err != nil {
			return nil, err
		}
	}
	text, next, more, isLossy, err := numberLines(ctx, in, max(a.Line, 1), a.Lines,
		t.config.MaxReply-noteRoom)
	switch {
	case err != nil:
		return nil, err
	case text == "" && next == 1:
		return &Reply{Text: "[the file is empty]\n"}, nil
	case text == "":
		return nil, fmt.Errorf("%s has only %d lines: give a line up to %[2]d", a.Path, next-1)
	case more:
		text += fmt.Sprintf("[more lines follow: read on with line %d]\n", next)
	}
	if isLossy {
		text += "[a \ufffd stands for bytes that are no UTF-8: no text for " +
			toolName(ctx, "edit") + " can have them]\n"
	}
	return &Reply{Text: text}, nil
}

// showPicture returns the Reply for a file that is a picture.
func showPicture(f sandbox.File, in io.Reader, path string) (*Reply, error) {
	fail := func(err error) error {
		return fmt.Errorf("%s is a picture that cannot be shown: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPictureSize { // so the file is not transferred
		return nil, fail(errPictureTooLarge(info.Size()))
	}
	data, err := bounded.ReadAll(in, path, maxPictureSize)
	if err != nil {
		return nil, err
	}
	i, own, shown, err := newImage(data)
	if err != nil {
		return nil, fail(err)
	}
	text := fmt.Sprintf("[%s is a picture (%s, %d × %d pixels)", path, imageType(data), own.X,
		own.Y)
	if shown != own {
		text += fmt.Sprintf(", shown with %d × %d", shown.X, shown.Y)
	}
	return &Reply{Text: text + "]\n", Images: []Image{i}}, nil
}

// binaryKinds maps the beginning of binary files to a description of their kind.
// http.DetectContentType does not know these kinds.
var binaryKinds = map[string]string{
	"\x7fELF":             "an ELF program or library",
	"SQLite format 3\x00": "an SQLite database",
	"\x00\x00\xfe\xff":    "text in UTF-32",
	"\xff\xfe\x00\x00":    "text in UTF-32",
}

// binaryKind describes the kind of a binary file by its beginning. For text it returns "".
func binaryKind(begin []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(begin), ";")
	switch {
	case kind == "application/pdf", kind == "application/x-gzip":
		return kind // even if the beginning has no zero byte
	case !bytes.Contains(begin, []byte{0}):
		return ""
	}
	for prefix, name := range binaryKinds {
		if bytes.HasPrefix(begin, []byte(prefix)) {
			return name
		}
	}
	if strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		return "of an unknown kind"
	}
	return kind
}

// maxLine is how many bytes of a line are shown at most, if that leaves room for another line.
const maxLine = 2000

// numberLines returns lines with their numbers, beginning with the line first. It returns at most
// so many lines (0 means no limit), and at most room bytes. next is the number of the line after
// them, and more reports whether that line exists. isLossy reports whether a U+FFFD stands for
// bytes of the file. numberLines reads no further than it must, because a file can have gigabytes.
func numberLines(ctx context.Context, in *bufio.Reader, first, lines,
	room int) (text string, next int, more, isLossy bool, err error) {
	longest := min(maxLine, room/2)
	var b strings.Builder
	for next = 1; ; next++ {
		raw, size, err := readLine(ctx, in, longest)
		if size == 0 && err == io.EOF {
			return b.String(), next, false, isLossy, nil
		}
		if err != nil && err != io.EOF {
			return "", 0, false, false, err
		}
		if next < first {
			continue
		}
		line := shownLine(raw, size, longest)
		shown := fmt.Sprintf("%6d\t%s\n", next, line)
		if lines > 0 && next >= first+lines || b.Len()+len(shown) > room {
			return b.String(), next, true, isLossy, nil
		}
		b.WriteString(shown)
		isLossy = isLossy || strings.Count(line, "\ufffd") > strings.Count(raw, "\ufffd")
	}
}

// readLine reads a line of any length. It returns the beginning of the line, which is longer than
// longest if the line is, and the line's size in bytes.
func readLine(ctx context.Context, in *bufio.Reader,
	longest int) (line string, size int, err error) {
	var kept []byte
	for {
		if err := ctxerr.Of(ctx); err != nil { // a disk image can be one line
			return "", 0, err
		}
		part, err := in.ReadSlice('\n')
		size += len(part)
		if len(kept) <= longest {
			kept = append(kept, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return strings.TrimSuffix(unixEnds(string(kept)), "\n"), size, err
	}
}

// shownLine returns the part of a line that is shown. size is the size of the whole line. Zero
// bytes become U+FFFD: JSON may hold them, but databases refuse them.
func shownLine(line string, size, longest int) string {
	line = strings.ReplaceAll(strings.ToValidUTF8(line, "\ufffd"), "\x00", "\ufffd")
	if len(line) > longest {
		return strings.ToValidUTF8(line[:longest], "") + fmt.Sprintf(" [… a line of %d bytes]",
			size)
	}
	return line
}
