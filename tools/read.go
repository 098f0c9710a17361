package tools

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

type readArgs struct {
	Path  string `json:"path" jsonschema:"the file"`
	Line  int    `json:"line,omitempty" jsonschema:"the first line to show. Default: 1"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many lines to show. Default: as many as fit"`
}

func (t *files) read(ctx context.Context, a readArgs) (*Reply, error) {
	ctx, done := t.bounded(ctx)
	defer done()
	f, err := t.files.Open(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { f.Close() }) // a read of a FIFO waits for a writer
	defer stop()
	first := max(a.Line, 1)
	text, next, more, err := numbered(ctx, f, first, a.Lines, t.options.budget-noteRoom)
	switch {
	case ctx.Err() != nil:
		return nil, ctxerr.Of(ctx)
	case err != nil:
		return nil, err
	case text == "" && next == 1:
		return &Reply{Text: "[the file is empty]\n"}, nil
	case text == "":
		return nil, fmt.Errorf("%s has only %d lines", a.Path, next-1)
	case more:
		text += fmt.Sprintf("[more lines follow: read on with line %d]\n", next)
	}
	return &Reply{Text: text}, nil
}

// longestLine is how many bytes of a line are shown, where the budget has room for more than one.
const longestLine = 2000

// numbered returns lines with their numbers, from first on, as many as asked for (0: no limit) and fit into room bytes; the number of the line behind them; and
// whether there is one. It reads no further than it must: a file can be a gigabyte.
func numbered(ctx context.Context, f io.Reader, first, lines, room int) (text string, next int, more bool, err error) {
	in := bufio.NewReaderSize(f, 64<<10)
	longest := min(longestLine, room/2)
	var b strings.Builder
	for next = 1; ; next++ {
		line, size, err := readLine(ctx, in, longest)
		if size == 0 && err == io.EOF {
			return b.String(), next, false, nil
		}
		if err != nil && err != io.EOF {
			return "", 0, false, err
		}
		if next < first {
			continue
		}
		shown := fmt.Sprintf("%6d\t%s\n", next, line)
		if lines > 0 && next >= first+lines || b.Len()+len(shown) > room {
			return b.String(), next, true, nil
		}
		b.WriteString(shown)
	}
}

// readLine reads a line, however long, and returns what is shown of it, and its size.
func readLine(ctx context.Context, in *bufio.Reader, longest int) (line string, size int, err error) {
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
		return shownLine(strings.TrimSuffix(string(kept), "\n"), size, longest), size, err
	}
}

func shownLine(line string, size, longest int) string {
	line = strings.ToValidUTF8(line, "\ufffd")
	if len(line) > longest {
		return strings.ToValidUTF8(line[:longest], "") + fmt.Sprintf(" [… a line of %d bytes]", size)
	}
	return line
}

var _ io.Reader = sandbox.File(nil)
