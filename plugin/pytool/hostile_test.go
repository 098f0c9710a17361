package pytool

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// A hostileBox prints the nonce, and then whatever a test wants.
type hostileBox struct {
	sandbox.Sandbox
	says func() io.Reader
}

func (b hostileBox) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	io.Copy(io.Discard, cmd.Stdin)
	io.WriteString(cmd.Stdout, cmd.Args[4])
	if b.says == nil {
		<-ctx.Done()
		return -1, ctxerr.Of(ctx)
	}
	io.Copy(struct{ io.Writer }{cmd.Stdout}, b.says())
	return 0, ctxerr.Of(ctx)
}

func head(kind byte, size uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, size))
}

func TestHostileFrames(t *testing.T) {
	answer := func(begin, piece, end string) func() io.Reader { // an answer of the greatest size
		n := (answerMax - len(begin) - len(end) - 1) / len(piece)
		return func() io.Reader {
			return io.MultiReader(strings.NewReader(head('r',
				uint32(len(begin)+n*len(piece)+len(end)))+begin), hostiletest.Times(piece, n),
				strings.NewReader(end+head('x', 1)+"0"))
		}
	}
	for _, c := range []struct {
		name string
		does func() io.Reader
		says string
	}{
		{"Size", func() io.Reader { return strings.NewReader(head('r', 1<<32-2)) }, "10 MiB"},
		{"EndlessAnswers", func() io.Reader {
			return hostiletest.Endless(head('r', 1<<10) + strings.Repeat("A", 1<<10))
		}, "10 MiB"},
		{"EmptyAnswers", func() io.Reader {
			return io.MultiReader(hostiletest.Times(head('r', 0), 1<<20), strings.NewReader("A"))
		}, ""},
		{"EndlessOutput", func() io.Reader {
			return io.MultiReader(strings.NewReader(head('o', 1<<32-2)),
				hostiletest.Times("A", 20<<20))
		}, ""},
		{"Kind", func() io.Reader {
			return strings.NewReader(head('?', 1) + "A")
		}, "a frame of kind"},
		{"Nonsense", answer("", "A", ""), "parse the result"},
		{"LargeValue", answer(`{"Value":"`, "A", `"}`), "no error"},
		{"ManyValues", answer(`{"Value":[`, "{},", `0]}`), "no error"},
		{"Deep", answer(`{"Value":`, "[", ""), "parse the result"},
		{"LargeException", answer(`{"Exception":{"Message":"`, "A", `"}}`), "AAAA"},
		{"Status", func() io.Reader {
			return strings.NewReader(head('x', 3) + "???")
		}, "parse the exit status"},
		{"Nothing", func() io.Reader { return strings.NewReader("") }, ""},
		{"Silence", nil, "not done after"},
	} {
		hostiletest.Case{Name: c.name, Says: c.says, Call: func(ctx context.Context,
			t *testing.T) error {
			call := Call{}
			if c.does == nil {
				call.Timeout = 50e6
			}
			_, err := (&Tool{Function: "f", Source: "def f(): pass"}).Call(ctx,
				hostileBox{says: c.does}, call)
			if err == nil {
				err = errors.New("no error")
			}
			return err
		}}.Run(t)
	}
}

// FuzzFrames checks that the frames mean the same in whatever pieces they arrive.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("noise"), []byte(head('o', 2)+"ab"+head('r', 2)+"{}"+head('x', 1)+"0"), 3)
	f.Add([]byte{}, []byte(head('e', 0)+head('p', 0)+head('v', 1)+"v"), 1)
	f.Add([]byte("NON"), []byte(head('?', 1)+"x"), 7)
	f.Add([]byte{}, []byte(head('r', 1<<32-1)), 4)
	f.Fuzz(func(t *testing.T, before, frames []byte, size int) {
		says := append(append(bytes.ReplaceAll(before, []byte("NONCE"), nil), "NONCE"...),
			frames...)
		size = max(1, min(size, len(says)))
		decode := func(size int) (out, errs bytes.Buffer, answers map[byte][]byte, err error) {
			d := &decoder{nonce: []byte("NONCE"), stdout: &out, stderr: &errs,
				answers: map[byte][]byte{}}
			for rest := says; len(rest) > 0 && err == nil; {
				n := min(size, len(rest))
				_, err = d.Write(rest[:n])
				rest = rest[n:]
			}
			return out, errs, d.answers, err
		}
		out, errs, answers, err := decode(len(says))
		out2, errs2, answers2, err2 := decode(size)
		require.Equal(t, err, err2)
		require.Equal(t, out.String(), out2.String())
		require.Equal(t, errs.String(), errs2.String())
		require.Equal(t, len(answers), len(answers2))
		for kind := range answers {
			require.Equal(t, string(answers[kind]), string(answers2[kind]))
		}
		(&Tool{Function: "f"}).parseAnswer(answers['r'], &Result{})
	})
}
