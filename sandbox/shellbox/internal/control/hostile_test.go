package control

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A hostileShell reads lines. It answers each question with what says returns.
type hostileShell struct {
	says   func(nonce string) io.Reader
	in     *io.PipeReader
	stdin  *io.PipeWriter
	out    *io.PipeWriter
	stdout *io.PipeReader
	done   chan struct{}
}

func newHostileShell(nonce string, says func(nonce string) io.Reader) *hostileShell {
	s := &hostileShell{says: says, done: make(chan struct{})}
	s.in, s.stdin = io.Pipe()
	s.stdout, s.out = io.Pipe()
	go func() {
		defer close(s.done)
		defer s.out.Close()
		begun := false // the first answer is to the script itself
		for buf := make([]byte, 64<<10); ; {
			n, err := s.in.Read(buf)
			if err != nil {
				return
			}
			if !strings.HasSuffix(string(buf[:n]), "echo "+nonce+"\n") {
				continue
			}
			answer := io.Reader(strings.NewReader(nonce + "\n"))
			if begun {
				answer = s.says(nonce)
			}
			begun = true
			if _, err := io.Copy(s.out, answer); err != nil {
				return
			}
		}
	}()
	return s
}

func (s *hostileShell) Stdin() io.WriteCloser { return s.stdin }
func (s *hostileShell) Stdout() io.Reader     { return s.stdout }
func (s *hostileShell) Stderr() io.Reader     { return strings.NewReader("") }
func (s *hostileShell) Reap()                 { <-s.done }
func (s *hostileShell) Close() error {
	s.stdout.Close()
	return s.in.Close()
}

// Another program has taken the place of the control shell, and prints anything.
func TestHostileShell(t *testing.T) {
	const process = "P 1 S 1 1 1 1 1 1 1 "
	endless := func(piece string) func(string) io.Reader {
		return func(string) io.Reader { return hostiletest.Endless(piece) }
	}
	full := func(begin, piece string) func(string) io.Reader { // the longest allowed answer
		return func(nonce string) io.Reader {
			n := (answerMax - len(begin) - 1) / len(piece)
			return io.MultiReader(strings.NewReader(begin), hostiletest.Times(piece, n),
				strings.NewReader("\n"+nonce+"\n"))
		}
	}
	tree := func(ctx context.Context, c *Processes) error { _, err := c.Tree(ctx, 1); return err }
	marked := func(ctx context.Context, c *Processes) error {
		_, err := c.Marked(ctx, "x")
		return err
	}
	env := func(ctx context.Context, c *Processes) error {
		_, _, err := c.Program(ctx, 1)
		return err
	}
	look := func(ctx context.Context, c *Processes) error { _, err := c.Look(ctx, 1); return err }
	manyLooks := func(ctx context.Context, c *Processes) error {
		for pid := range 8 {
			if _, err := c.Look(ctx, pid+1); err != nil {
				return err
			}
		}
		return errors.New("all are let through")
	}
	for _, c := range []struct {
		name string
		call func(context.Context, *Processes) error
		does func(nonce string) io.Reader
		says string
		time time.Duration
	}{
		{"EndlessLine", tree, endless("A"), "8 MiB", 0},
		{"EndlessLines", tree, endless("A\n"), "8 MiB", 0},
		{"Processes", tree, full("", process+"\n"), "16 MiB", 0},
		{"ShortProcesses", tree, full("", "P          \n"), "16 MiB", 0},
		{"IDs", marked, full("", "1 "), "16 MiB", 0},
		{"Environment", env, full("/\n", "\n"), "16 MiB", 0},
		{"Arguments", look, full(process+"\nA\n", "\n"), "16 MiB", 0},
		{"Lines", look, full("", "\n"), "2 MiB", 0},
		{"Threads", look, full(process+"\n", "T 1 1 tty\n"), "2 MiB", 0},
		{"Terminals", look, full(process+"\n", "M 1\n"), "2 MiB", 0},
		{"OneTerminal", look, full(process+"\nM 1\nM ", "0 "), "no error", 0},
		{"Words", look, full(process+"\nT ", "1 "), "no error", 0},
		{"Memos", manyLooks, full("", process), "all are let through", 0},
		{"Silence", tree, func(string) io.Reader {
			return strings.NewReader("")
		}, "deadline", 100 * time.Millisecond},
		{"Order", tree, func(string) io.Reader {
			return strings.NewReader("AAAA\n")
		}, "deadline", 100 * time.Millisecond},
	} {
		hostiletest.Case{Name: c.name, Says: c.says, Time: c.time,
			Call: func(ctx context.Context, t *testing.T) error {
				var p *Processes
				p = New(func(context.Context) (Shell, error) {
					return newHostileShell(p.nonce, c.does), nil
				})
				defer p.Close()
				err := c.call(ctx, p)
				if err == nil {
					return errors.New("no error")
				}
				return err
			}}.Run(t)
	}
}

// A look at as many nested relays as a look may have is judged soon: nothing takes a time that
// grows with the square of their number. Each takes some 50 ms; the limit is there for a fault of
// that kind, which took more than a minute.
func TestHostileRelays(t *testing.T) {
	for _, c := range []struct {
		name  string
		tty   func(i int) int // of each process
		what  string          // its thread waits for
		waits int             // that are found
	}{
		{"OneTerminal", func(int) int { return 1 }, "poll", -1},
		{"Readers", func(int) int { return 1 }, "tty", -1},
		{"TerminalEach", func(i int) int { return i }, "poll", 1},
		{"ReaderOnTerminalEach", func(i int) int { return i }, "tty", 1},
		{"NoTerminal", func(i int) int {
			if i%2 == 0 && i > 1 {
				return 0
			}
			return i
		}, "tty", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answer strings.Builder
			n := lookMax / 160 / 4
			for i := 1; i <= n; i++ {
				id, tty := itoa(i), itoa(c.tty(i))
				answer.WriteString("P " + id + " S " + itoa(i-1) + " 1 1 " + tty +
					" 1 1 1 sh\nT " + id + " 1 " + c.what + "\n")
			}
			for i := 1; i <= n; i++ {
				answer.WriteString("M " + itoa(i) + "\nisig -icanon\n")
			}
			began := time.Now()
			v, err := parseLook(answer.String(), &memo{})
			require.NoError(t, err)
			waits := v.look(1).Waits
			if c.waits < 0 {
				c.waits = n
			}
			require.Len(t, waits, c.waits)
			t.Logf("%d processes: %v", len(v.processes), time.Since(began))
			require.Less(t, time.Since(began), testenv.Limit)
		})
	}
}

func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		"P 10 S 1 10 10 34816 11 500 9999 bash\nT 10 5 -\nT 11 7 tty\nB 3\nU 100.5\nM 34816\nmin " +
			"= 0; time = 0;\n-icanon -echo\nR pipe:[1]\nA\nbash\n-i\n",
		"G\n", "R\n", "A\n", "P\nB\nT\nM\nU\n", "1 2 -3 99999999999999999999\n",
		"/tmp\nA=1\nB=\x002\n", "U NaN\nU 1e300\nM -1\nM x\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		m := memo{reads: "before", args: []string{"before"}}
		if v, err := parseLook(out, &m); err == nil {
			for _, pid := range []int{0, 10} {
				v.look(pid)
			}
			m.clone()
		}
		ps, err := parseProcesses(out)
		require.NoError(t, err)
		require.LessOrEqual(t, len(ps), strings.Count(out, "\n")+1)
		parseIDs(out)
		parseShell(out)
		parseModes(out)
		parseSeconds(out)
		_, env, err := parseProgram(out)
		if err == nil {
			require.LessOrEqual(t, len(strings.Join(env, "")), len(out))
		}
		var large *bounded.TooLargeError
		require.False(t, errors.As(err, &large), "so short a text is never too large")
	})
}
