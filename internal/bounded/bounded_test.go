package bounded_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/stretchr/testify/require"
)

// endless is a reader without end and without "\n".
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func tooLarge(t *testing.T, err error, what, bound string) {
	t.Helper()
	var large *bounded.TooLargeError
	require.ErrorAs(t, err, &large)
	require.ErrorContains(t, err, what)
	require.ErrorContains(t, err, bound)
}

func TestReadAll(t *testing.T) {
	data, err := bounded.ReadAll(strings.NewReader("12345"), "it", 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(data))
	data, err = bounded.ReadAll(endless{}, "the answer", 2<<10)
	tooLarge(t, err, "the answer", "2 KiB")
	require.Len(t, data, 2<<10)
	_, err = bounded.ReadAll(iotest.ErrReader(io.ErrClosedPipe), "it", 5)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestLine(t *testing.T) {
	for name, line := range map[string]func(io.Reader, int) (string, error){
		"Line": func(r io.Reader, most int) (string, error) {
			return bounded.Line(bufio.NewReaderSize(r, 16), "the line", most)
		},
		"BareLine": func(r io.Reader, most int) (string, error) {
			return bounded.BareLine(r, "the line", most)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				says, want string
				most       int
				err        error
			}{
				{"\n", "", 0, nil}, {"abc\nd", "abc", 3, nil},
				{strings.Repeat("x", 100) + "\n", strings.Repeat("x", 100), 100, nil},
				{"", "", 3, io.EOF}, {"abc", "abc", 3, io.EOF},
			} {
				got, err := line(strings.NewReader(c.says), c.most)
				require.Equal(t, c.want, got)
				require.Equal(t, c.err, err)
			}
			for _, most := range []int{0, 3, 16, 100} {
				got, err := line(endless{}, most)
				tooLarge(t, err, "the line", "bytes")
				require.Equal(t, strings.Repeat("x", most), got)
				got, err = line(strings.NewReader(strings.Repeat("x", most)+"y\n"), most)
				tooLarge(t, err, "the line", "bytes")
				require.Equal(t, strings.Repeat("x", most), got)
			}
		})
	}
	rest := strings.NewReader("a\nb")
	_, err := bounded.BareLine(rest, "it", 10)
	require.NoError(t, err)
	require.Equal(t, 1, rest.Len(), "nothing after the line is read")
}

func TestSize(t *testing.T) {
	n, err := bounded.Size(int64(5), "it", 5)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	_, err = bounded.Size(int64(-2), "the file", 5)
	require.EqualError(t, err, "the size of the file is said to be -2")
	for _, claim := range []uint64{6, math.MaxInt64, math.MaxUint64 - 1} {
		_, err = bounded.Size(claim, "the file", 5)
		tooLarge(t, err, "the file", "5 bytes")
	}
}

func TestExactly(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 500_000)
	got, err := bounded.Exactly(bytes.NewReader(want), uint32(len(want)), "it", len(want))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	got, err = bounded.Exactly(strings.NewReader("abc"), 1<<30, "it", 1<<30)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.LessOrEqual(t, cap(got), 2<<20, "a claim takes no memory")
	_, err = bounded.Exactly(endless{}, uint32(math.MaxUint32), "the frame", 1<<20)
	tooLarge(t, err, "the frame", "1 MiB")
}

func TestList(t *testing.T) {
	list := bounded.List{What: "the list", Max: 1 << 20}
	for n := range 1 << 20 {
		if err := list.Add(10); err != nil {
			tooLarge(t, err, "the list", "1 MiB")
			require.Greater(t, n, 1000)
			return
		}
	}
	t.Fatal("the list has no end")
}

func TestCapture(t *testing.T) {
	run, out, stop := bounded.Capture(t.Context(), "what it prints", 10)
	io.WriteString(out, "0123456789")
	require.NoError(t, out.Err())
	require.NoError(t, run.Err())
	n, err := io.WriteString(out, "x")
	tooLarge(t, err, "what it prints", "10 bytes")
	require.Zero(t, n)
	require.Equal(t, err, out.Err())
	require.Equal(t, err, ctxerr.Of(run))
	require.Equal(t, "0123456789", out.String())
	stop()

	run, out, stop = bounded.Capture(t.Context(), "it", 10)
	stop()
	require.ErrorIs(t, context.Cause(run), context.Canceled)
	require.NoError(t, out.Err())
}

func FuzzLine(f *testing.F) {
	f.Add("abc\ndef", 2)
	f.Add(strings.Repeat("x", 40)+"\n", 16)
	f.Fuzz(func(t *testing.T, says string, most int) {
		if most < 0 || most > 1<<16 {
			t.Skip("no bound")
		}
		want, wantErr := bounded.BareLine(strings.NewReader(says), "it", most)
		got, err := bounded.Line(bufio.NewReaderSize(strings.NewReader(says), 16), "it", most)
		require.Equal(t, want, got)
		require.Equal(t, wantErr, err)
		var large *bounded.TooLargeError
		line, _, whole := strings.Cut(says, "\n")
		require.Equal(t, len(line) > most, errors.As(err, &large))
		if len(line) <= most {
			require.Equal(t, line, got)
			require.Equal(t, whole, err == nil)
		}
	})
}
