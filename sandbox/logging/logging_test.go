package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/logging"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A journal is a handler's writer that keeps what it gets.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// lines returns the records from a level on, without the attribute box.
func (j *journal) lines(from slog.Level) (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		var level slog.Level
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if level.UnmarshalText([]byte(strings.TrimPrefix(word, "level="))) == nil && level >= from {
			lines = append(lines, level.String()+" "+
				strings.Replace(rest, " box=LocalBox", "", 1))
		}
	}
	return lines
}

// open returns a box that is logged to the journal.
func open(t testing.TB) (sandbox.Sandbox, *journal) {
	t.Helper()
	log := &journal{}
	box := logging.New(newBox(t), slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		}})))
	t.Cleanup(func() { box.Close() })
	return box, log
}

func newBox(t testing.TB) *localbox.LocalBox {
	t.Helper()
	box, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	return box
}

// TestRecords: a record for each event, and no secret from level Info on.
func TestRecords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	box, log := open(t)
	_, err := box.Execute(ctx, "echo geheim; (exit 3)")
	require.NoError(t, err)
	_, err = box.Execute(ctx, "stty -echo; read -r x; stty echo; : \x1b[2J")
	require.NoError(t, err)
	_, err = box.Execute(ctx, "echo refused")
	require.ErrorIs(t, err, sandbox.ErrBusy)
	_, err = box.Input(ctx, "verborgen\n")
	require.NoError(t, err)
	_, err = box.Execute(ctx, "sleep 1000", sandbox.Timeout(10*time.Millisecond))
	require.ErrorIs(t, err, sandbox.ErrTimeout)
	_, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "exit 4"}})
	require.NoError(t, err)
	_, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"/geheim"}, Dir: os.DevNull})
	require.Error(t, err)
	require.NoError(t, box.Resize(ctx, 30, 90))
	s, err := box.Open(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	job, err := box.Background(ctx, "read -r geheim; exit 5")
	require.NoError(t, err)
	_, err = job.Until(ctx)
	require.NoError(t, err)
	require.NoError(t, job.Input(ctx, "verborgen\n"))
	<-job.Done()
	require.NoError(t, job.Forget())
	_, err = box.Background(ctx, "echo geheim", sandbox.Dir("/geheim"))
	require.Error(t, err)
	require.NoError(t, box.Close())

	all := log.lines(slog.LevelDebug)
	timeout := slices.IndexFunc(all, func(s string) bool {
		return strings.HasPrefix(s, "WARN") &&
			strings.Contains(s, "timed out")
	})
	require.Positive(t, timeout)
	require.Regexp(t, `^WARN msg="command ended" session=main exit_code=130 bytes=\d+ `+
		`error="command timed out"$`, all[timeout])
	require.Equal(t, []string{
		`INFO msg="session opened" session=main`,
		`DEBUG msg="command begins" session=main command="echo geheim; (exit 3)"`,
		`INFO msg="command ended" session=main exit_code=3 bytes=7`,
		`DEBUG msg="command begins" session=main ` +
			`command="stty -echo; read -r x; stty echo; : \\x1b[2J"`,
		`INFO msg="command waits" session=main state=waiting awaits=secret may_go_on=false`,
		`DEBUG msg="command begins" session=main command="echo refused"`,
		fmt.Sprintf(`WARN msg="command ended" session=main bytes=0 error=%q`, sandbox.ErrBusy),
		`DEBUG msg=input session=main length=10 awaits=secret`,
		`INFO msg="command ended" session=main exit_code=0 bytes=0`,
		`DEBUG msg="command begins" session=main command="sleep 1000"`,
		all[timeout],
		`DEBUG msg="program begins" program=1 args="[sh -c exit 4]"`,
		`INFO msg="program ended" program=1 exit_code=4`,
		`DEBUG msg="program begins" program=2 args=[/geheim]`,
		all[14],
		`DEBUG msg="terminal resized" session=main rows=30 cols=90`,
		`INFO msg="session opened" session=session-1`,
		`INFO msg="session closed" session=session-1`,
		`DEBUG msg="job begins" command="read -r geheim; exit 5"`,
		`INFO msg="job started" job=job-1`,
		`INFO msg="job waits" job=job-1 state=waiting awaits=line may_go_on=false`,
		`DEBUG msg=input job=job-1 length=10 awaits=line`,
		all[22],
		`DEBUG msg="job begins" command="echo geheim"`,
		all[24],
		`INFO msg="box closed"`,
	}, all)
	require.Regexp(t, `^WARN msg="program ended" program=2 .*error=`, all[14])
	require.Regexp(t, `^INFO msg="job ended" job=job-1 exit_code=5 bytes=\d+$`, all[22])
	require.Regexp(t, `^WARN msg="job not started" error=`, all[24])
	for _, text := range []string{"verborgen", "refused", "sleep"} {
		require.NotContains(t, strings.Join(log.lines(slog.LevelInfo), "\n"), text)
	}
}

// TestEnds: the end of each command is logged, however it ends.
func TestEnds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	box, log := open(t)
	_, err := box.Execute(ctx, "read -r x")
	require.NoError(t, err)
	_, err = box.Background(ctx, "sleep 1000")
	require.NoError(t, err)
	require.NoError(t, box.Close())
	ends := log.lines(slog.LevelInfo)
	ends = ends[len(ends)-3:]
	slices.Sort(ends)
	require.Equal(t, []string{
		`INFO msg="box closed"`,
		`INFO msg="command ended" session=main bytes=0 error="the session or sandbox has been closed"`,
		`INFO msg="job ended" job=job-1 bytes=0 error="the session or sandbox has been closed"`,
	}, ends)
}

// TestLong: a record has the beginning of a long command, without half a character.
func TestLong(t *testing.T) {
	t.Parallel()
	box, log := open(t)
	_, err := box.Execute(t.Context(), ": "+strings.Repeat("ä", 1<<20))
	require.NoError(t, err)
	begins := log.lines(slog.LevelDebug)[1]
	require.Equal(t, `DEBUG msg="command begins" session=main command=": `+
		strings.Repeat("ä", 511)+`…"`, begins)
}

// A panicking handler panics at its nth record.
type panicking struct {
	slog.Handler
	after *int
}

func (p panicking) WithAttrs([]slog.Attr) slog.Handler { return p }

func (p panicking) Handle(context.Context, slog.Record) error {
	*p.after--
	if *p.after < 0 {
		panic("the disk is full")
	}
	return nil
}

// TestPanic: a handler that panics ends the log and nothing else.
func TestPanic(t *testing.T) {
	t.Parallel()
	after := 2
	box := logging.New(newBox(t), slog.New(panicking{slog.NewTextHandler(io.Discard, nil), &after}))
	job, err := box.Background(t.Context(), "exit 3")
	require.NoError(t, err)
	<-job.Done()
	res, err := box.Execute(t.Context(), "exit 4")
	require.NoError(t, err)
	require.Equal(t, 4, res.ExitCode)
	require.ErrorContains(t, box.Close(), "the logger's handler panicked: the disk is full")
	require.Equal(t, -1, after, "it gets no more records")
}

// A key is for a value in a context.
type key struct{}

// A traced handler adds the value of the context, as handlers do with a trace's id.
type traced struct{ slog.Handler }

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traced{h.Handler.WithAttrs(attrs)}
}

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(key{}).(string); ok {
		r.AddAttrs(slog.String("trace", id))
	}
	return h.Handler.Handle(ctx, r)
}

// TestContext: the handler gets the context of the call that has begun the command.
func TestContext(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	box := logging.New(newBox(t), slog.New(traced{slog.NewJSONHandler(&log, nil)}))
	_, err := box.Execute(context.WithValue(t.Context(), key{}, "abc"), "read -r x")
	require.NoError(t, err)
	_, err = box.Input(t.Context(), "x\n")
	require.NoError(t, err)
	require.NoError(t, box.Close())
	var traces []any
	for line := range strings.Lines(log.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		traces = append(traces, record["trace"])
	}
	require.Equal(t, []any{nil, "abc", "abc", nil}, traces, "%s", &log)
}

// TestNil: New panics, and names the argument that is nil.
func TestNil(t *testing.T) {
	require.PanicsWithValue(t, "logging: New: the box is nil", func() {
		logging.New(nil, slog.Default())
	})
	require.PanicsWithValue(t, "logging: New: the logger is nil", func() {
		logging.New(&localbox.LocalBox{}, nil)
	})
}

// TestConformance: a logged box behaves as the box does. The tests of package tracing run another
// group behind an Observer.
func TestConformance(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		box := logging.New(newBox(t), slog.New(slog.NewTextHandler(io.Discard,
			&slog.HandlerOptions{Level: slog.LevelDebug})))
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(sandboxtest.Groups("Life"))...)
}

func Example() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" { // they differ each time
				return slog.Attr{}
			}
			return a
		},
	}))
	ctx := context.Background()
	inner, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	box := logging.New(inner, logger)
	_, err = box.Execute(ctx, "echo hello; (exit 3)")
	if err = errors.Join(err, box.Close()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg="session opened" box=LocalBox session=main
	// level=INFO msg="command ended" box=LocalBox session=main exit_code=3 bytes=6
	// level=INFO msg="box closed" box=LocalBox
}
