package recording_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBox(t testing.TB) *localbox.LocalBox {
	t.Helper()
	box, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	return box
}

// A written recording, as it is read.
type written struct {
	header map[string]any
	events []writtenEvent
}

type writtenEvent struct {
	at         float64
	code, data string
}

// read reads a recording, and checks what every recording must hold.
func read(t testing.TB, data []byte) (w written) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	require.True(t, lines.Scan())
	require.NoError(t, json.Unmarshal(lines.Bytes(), &w.header))
	require.EqualValues(t, 2, w.header["version"])
	for last := 0.0; lines.Scan(); {
		var e [3]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e), "%q", lines.Bytes())
		event := writtenEvent{e[0].(float64), e[1].(string), e[2].(string)}
		require.Contains(t, "oimr", event.code)
		require.GreaterOrEqual(t, event.at, last, "time goes on")
		last = event.at
		w.events = append(w.events, event)
	}
	return w
}

// all returns the data of the events of a code.
func (w written) all(code string) (data []string) {
	for _, e := range w.events {
		if e.code == code {
			data = append(data, e.data)
		}
	}
	return data
}

// shown is what a terminal gets.
func (w written) shown() string { return strings.Join(w.all("o"), "") }

func TestNew(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var file bytes.Buffer
	rec := recording.New(newBox(t), &file)
	_, err := rec.Execute(ctx, "echo hello\nfalse")
	require.NoError(t, err)
	require.NoError(t, rec.Resize(ctx, 30, 100))
	_, err = rec.Execute(ctx, `printf 'one\ntwo '`)
	require.NoError(t, err)
	other, err := rec.Open(ctx, sandbox.Size(10, 40))
	require.NoError(t, err)
	_, err = other.Execute(ctx, "echo other; (exit 3)")
	require.NoError(t, err)
	require.NoError(t, other.Close())
	job, err := rec.Background(ctx, `echo working; (exit 4)`, sandbox.Size(30, 100))
	require.NoError(t, err)
	<-job.Done()
	require.NoError(t, job.Forget())
	require.Empty(t, rec.Jobs())
	require.NoError(t, rec.Close())
	require.NoError(t, rec.Close())

	w := read(t, file.Bytes())
	require.EqualValues(t, 80, w.header["width"])
	require.EqualValues(t, 24, w.header["height"])
	require.Equal(t, "LocalBox", w.header["title"])
	require.Equal(t, []string{"100x30", "40x10", "100x30"}, w.all("r"))
	require.Equal(t, "\x1b[1m$ echo hello\r\n> false\x1b[0m\r\nhello\r\n\x1b[1m$ printf "+
		"'one\\ntwo '\x1b[0m\r\none\r\ntwo \r\n"+
		"\x1b[2m-- session-1 --\x1b[0m\r\n\x1b[1m$ echo other; (exit 3)\x1b[0m\r\nother\r\n"+
		"\x1b[2m-- job-1 --\x1b[0m\r\n\x1b[1m$ echo working; (exit 4)\x1b[0m\r\nworking\r\n",
		w.shown())
	marks := w.all("m")
	require.Len(t, marks, 8)
	for i, want := range []string{
		"main: echo hello\nfalse", "main: exit status 1 after ", "main: printf 'one\\ntwo '",
		"main: exit status 0 after ",
		"session-1: echo other; (exit 3)", "session-1: exit status 3 after ",
		"job-1: echo working; (exit 4)", "job-1: exit status 4 after ",
	} {
		require.True(t, strings.HasPrefix(marks[i], want), "%q is not %q", marks[i], want)
	}
	require.Equal(t, w.shown(), player(t, file.Bytes()))
}

// player returns what Debian's asciinema shows of a recording. asciinema needs a terminal.
func player(t *testing.T, recording []byte) string {
	t.Helper()
	if _, err := exec.LookPath("asciinema"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("asciinema is not installed: no player has seen the recording")
	}
	box, err := localbox.New(t.Context(), localbox.Config{
		Env: []string{"LC_ALL=C.UTF-8", "HOME=" + t.TempDir()}})
	require.NoError(t, err)
	defer box.Close()
	require.NoError(t, os.WriteFile(filepath.Join(box.Dir(), "box.cast"), recording, 0o600))
	var raw bytes.Buffer
	for _, command := range []string{"asciinema play -i 0.01 box.cast", "asciinema cat box.cast"} {
		raw.Reset()
		res, err := box.Execute(t.Context(), command, sandbox.Tee(&raw))
		require.NoError(t, err)
		require.Zero(t, res.ExitCode, res.Output)
	}
	return raw.String()
}

// TestInput: answers that are echoed are recorded, and no secret is.
func TestInput(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var file bytes.Buffer
	rec := recording.New(newBox(t), &file)
	res, err := rec.Execute(ctx,
		`printf 'name? '; read -r n; printf 'password? '; stty -echo; read -r p; stty echo
printf 'again? '; read -r a; echo; echo "$n:${#p}:$a"`)
	require.NoError(t, err)
	if res.State != sandbox.Waiting {
		t.Skip("nobody tells here that a program waits: ", res.State)
	}
	res, err = rec.Input(ctx, "ann\n")
	require.NoError(t, err)
	require.Equal(t, sandbox.Secret, res.Awaits)
	res, err = rec.Input(ctx, "geheim\n")
	require.NoError(t, err)
	require.Equal(t, sandbox.Line, res.Awaits)
	res, err = rec.Input(ctx, "y\nverdeckt\n")
	require.NoError(t, err)
	require.Equal(t, "ann:6:y", lastLine(res.Output))
	_, err = rec.Execute(ctx, "stty -echo; echo ready; read -r x; stty echo; echo ${#x}; read -r y",
		sandbox.Until(regexp.MustCompile("ready\n")))
	require.NoError(t, err)
	require.NoError(t, rec.Type(ctx, "verborgen\n")) // nobody has asked yet, as far as is known
	res, err = rec.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "9\n", res.Output)
	_, err = rec.Interrupt(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, rec.Type(ctx, "nichts\n"), sandbox.ErrIdle)
	job, err := rec.Background(ctx, "read -r x; stty -echo; read -r y; stty echo")
	require.NoError(t, err)
	for _, answer := range []string{"offen\n", "leise\n"} {
		res, err = job.Until(ctx)
		require.NoError(t, err)
		require.Equal(t, sandbox.Waiting, res.State)
		require.NoError(t, job.Input(ctx, answer))
	}
	<-job.Done()
	require.NoError(t, rec.Close())
	w := read(t, file.Bytes())
	require.Equal(t, []string{"ann\n", "", "y\n", "", "\x03", "offen\n", ""}, w.all("i"))
	for _, secret := range []string{"geheim", "verborgen", "nichts", "leise"} {
		require.NotContains(t, file.String(), secret)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

// TestBetweenCalls: output is recorded at its time also while no call waits.
func TestBetweenCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	box := newBox(t)
	var file, own bytes.Buffer
	rec := recording.New(box, &file)
	_, err := rec.Execute(ctx, "echo begun; until [ -e go ]; do sleep 0.01; done; echo unseen; "+
		"touch come; until [ -e on ]; do sleep 0.01; done",
		sandbox.Until(regexp.MustCompile("begun\n")), sandbox.Follow(&own))
	require.NoError(t, err)
	_, err = rec.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c",
		"touch go; until [ -e come ]; do sleep 0.01; done; touch on"}})
	require.NoError(t, err)
	_, err = rec.Wait(ctx)
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	require.Contains(t, read(t, file.Bytes()).shown(), "begun\r\nunseen\r\n")
	require.Equal(t, "begun\nunseen\n", own.String(),
		"who else follows gets the bytes as they come")
}

func TestBytes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var file bytes.Buffer
	rec := recording.New(newBox(t), &file)
	// A rune in two parts, half a rune before the end, bytes that are none, quotes, a NUL; then the
	// alternate screen, where "\n" goes straight down.
	_, err := rec.Execute(ctx,
		`printf '\342\202'; sleep 0.05; printf '\254 \377 "\\ \000\001\n'; printf '\033[?10'
sleep 0.05; printf '49ha\nb\033[?1049lc\n\342\202'`)
	require.NoError(t, err)
	_, err = rec.Execute(ctx, `printf '\033[?1049hkilled'`)
	require.NoError(t, err)
	_, err = rec.Execute(ctx, "# \x1b[2J \u009b2J \u202e")
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	_, shown, _ := strings.Cut(read(t, file.Bytes()).shown(), "\x1b[0m\r\n")
	require.True(t,
		strings.HasPrefix(shown,
			"€ \ufffd \"\\ \x00\x01\r\n\x1b[?1049ha\nb\x1b[?1049lc\r\n\ufffd\ufffd\r\n"), "%q",
		shown)
	require.Contains(t, shown, "killed\x1b[?1049l\r\n\x1b[1m$ # ␛[2J \\u009b2J \\u202e\x1b[0m\r\n")
}

// TestEachByte: every byte of ASCII, at every place of a word of eight.
func TestEachByte(t *testing.T) {
	t.Parallel()
	box := newBox(t)
	var text []byte
	for at := range 8 {
		for b := byte(0); b < 0x80; b++ {
			word := []byte("abcdefgh")
			word[at] = b
			text = append(text, word...)
		}
	}
	require.NoError(t, box.Files().WriteFile(t.Context(), "bytes", text, 0o644))
	var file bytes.Buffer
	rec := recording.New(box, &file)
	_, err := rec.Execute(t.Context(), "cat bytes")
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	_, shown, _ := strings.Cut(read(t, file.Bytes()).shown(), "\x1b[0m\r\n")
	require.Equal(t, strings.ReplaceAll(string(text), "\n", "\r\n"), shown)
}

// TestUnseen: a command whose end no call has returned ends before the next one.
func TestUnseen(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	rec := recording.New(newBox(t), &file)
	_, err := rec.Execute(t.Context(), "echo begun; until [ -e go ]; do sleep 0.01; done",
		sandbox.Until(regexp.MustCompile("begun\n")))
	require.NoError(t, err)
	_, err = rec.Execute(t.Context(), "echo not yet")
	require.ErrorIs(t, err, sandbox.ErrBusy)
	require.NoError(t, rec.Files().WriteFile(t.Context(), "go", nil, 0o644))
	require.Eventually(t, func() bool {
		return errors.Is(rec.Type(t.Context(), ""), sandbox.ErrIdle)
	}, testenv.Limit, 10*time.Millisecond)
	_, err = rec.Execute(t.Context(), "echo next")
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	markers := read(t, file.Bytes()).all("m")
	require.Len(t, markers, 6)
	require.Contains(t, markers[2], "not executed")
	require.Equal(t, "main: the previous command had ended, unseen", markers[4])
	require.Contains(t, markers[5], "exit status 0")
}

// TestNil: New and Each panic, and name the argument that is nil.
func TestNil(t *testing.T) {
	box := newBox(t)
	none := func(string) (io.WriteCloser, error) { return nil, nil }
	require.PanicsWithValue(t, "recording: New: the box is nil", func() {
		recording.New(nil, io.Discard)
	})
	require.PanicsWithValue(t, "recording: New: the writer is nil", func() {
		recording.New(box, nil)
	})
	require.PanicsWithValue(t, "recording: Each: the box is nil", func() {
		recording.Each(nil, none)
	})
	require.PanicsWithValue(t, "recording: Each: create is nil", func() {
		recording.Each(box, nil)
	})
	rec := recording.Each(box, none)
	_, err := rec.Execute(t.Context(), "echo one")
	require.NoError(t, err)
	require.EqualError(t, rec.Err(), `recording: create("main") has returned no writer`)
	require.ErrorContains(t, rec.Close(), `create("main") has returned no writer`)
}

// TestEach: each session and job has a file, which is closed when it is over.
func TestEach(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var mu sync.Mutex
	files := map[string]*closeable{}
	rec := recording.Each(newBox(t), func(id string) (io.WriteCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		if id == "session-2" {
			return nil, errors.New("no room")
		}
		files[id] = &closeable{}
		return files[id], nil
	})
	for _, id := range []string{"session-1", "session-2"} {
		s, err := rec.Open(ctx, sandbox.Size(50, 132))
		require.NoError(t, err)
		res, err := s.Execute(ctx, "echo in "+id)
		require.NoError(t, err)
		require.Equal(t, "in "+id+"\n", res.Output)
		require.NoError(t, s.Close())
	}
	require.True(t, files["session-1"].closed)
	require.False(t, files["main"].closed)
	j, err := rec.Background(ctx, "echo in job-1")
	require.NoError(t, err)
	_, err = j.Wait(ctx)
	require.NoError(t, err)
	require.ErrorContains(t, rec.Err(), "no room")
	require.ErrorContains(t, rec.Close(), "no room")
	require.Len(t, files, 3)
	for id, f := range files {
		require.True(t, f.closed)
		w := read(t, f.Bytes())
		require.Equal(t, "LocalBox "+id, w.header["title"])
		if id != "main" {
			require.Contains(t, w.shown(), "\r\nin "+id+"\r\n")
		}
	}
	require.EqualValues(t, 132, read(t, files["session-1"].Bytes()).header["width"])
}

type closeable struct {
	bytes.Buffer
	closed bool
}

func (c *closeable) Close() error { c.closed = true; return nil }
