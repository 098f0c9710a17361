package recording

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// writes are the Writes of a recording, each with its time.
type writes struct {
	began time.Time
	mu    sync.Mutex
	texts []string
	at    []time.Duration
	hangs chan struct{} // while it is open, no Write returns; nil: none hangs
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.texts, w.at = append(w.texts, string(p)), append(w.at, time.Since(w.began))
	hangs := w.hangs
	w.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	return len(p), nil
}

// castTest begins a recording of two sessions, on a clock of its own, whose header has been
// written.
func castTest(t *testing.T, test func(t *testing.T, w *writes, c *cast, one, two *track)) {
	synctest.Test(t, func(t *testing.T) {
		w := &writes{began: time.Now()}
		c := newCast(w, nil, "test", sandbox.DefaultRows, sandbox.DefaultCols)
		track := func(id string) *track {
			return &track{id: id, cast: c, shared: true, rows: sandbox.DefaultRows,
				cols: sandbox.DefaultCols}
		}
		if head, _ := w.since(0); len(head) != 1 || !strings.HasPrefix(head[0], `{"version":2,`) {
			t.Fatalf("at first: %q", head)
		}
		test(t, w, c, track("one"), track("two"))
		c.close()
	})
}

// since returns the Writes from the nth on, after all goroutines have done what they can without
// time passing.
func (w *writes) since(n int) (texts []string, at []time.Duration) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts[n:], w.at[n:]
}

// hang makes every later Write block until release is called.
func (w *writes) hang() (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangs = make(chan struct{})
	return func() { close(w.hangs) }
}

// TestCastTogether: events within 10 ms are one Write, in their order. Output with nothing in
// between is one event.
func TestCastTogether(t *testing.T) {
	castTest(t, func(t *testing.T, w *writes, c *cast, one, two *track) {
		time.Sleep(time.Hour) // nothing is written for nothing
		for range 9 {
			io.WriteString(one, "a\n")
			time.Sleep(time.Millisecond)
		}
		one.input("x")
		io.WriteString(one, "b\n")
		two.end("ended")
		for range 3 {
			io.WriteString(two, "c\n")
		}
		io.WriteString(one, "d\n")
		if early, _ := w.since(1); len(early) > 0 {
			t.Errorf("before 10 ms: %q", early)
		}
		time.Sleep(time.Millisecond)
		got, at := w.since(1)
		if len(got) != 1 || at[0] != time.Hour+10*time.Millisecond {
			t.Fatalf("%d writes at %v: %q", len(got), at, got)
		}
		want := `[3600.000000, "o", "` + strings.Repeat(`a\r\n`, 9) + "\"]\n" +
			`[3600.009000, "i", "x"]` + "\n" +
			`[3600.009000, "o", "b\r\n"]` + "\n" +
			`[3600.009000, "m", "two: ended"]` + "\n" +
			`[3600.009000, "o", "\u001b[2m-- two --\u001b[0m\r\n"]` + "\n" +
			`[3600.009000, "o", "c\r\nc\r\nc\r\n"]` + "\n" +
			`[3600.009000, "o", "\u001b[2m-- one --\u001b[0m\r\n"]` + "\n" +
			`[3600.009000, "o", "d\r\n"]` + "\n"
		if got[0] != want {
			t.Errorf("got\n%s\nwant\n%s", got[0], want)
		}
	})
}

// TestCastMuch: 256 KiB do not wait for 10 ms. What comes while a Write is under way is written
// right after it.
func TestCastMuch(t *testing.T) {
	castTest(t, func(t *testing.T, w *writes, c *cast, one, _ *track) {
		piece := strings.Repeat("x", 4<<10)
		for range batchMax/len(piece) - 1 {
			io.WriteString(one, piece)
		}
		if early, _ := w.since(1); len(early) > 0 {
			t.Fatalf("%d writes before there are 256 KiB", len(early))
		}
		release := w.hang()
		io.WriteString(one, piece)
		if got, at := w.since(1); len(got) != 1 || strings.Count(got[0], "\n") != 1 ||
			strings.Count(got[0], "x") != batchMax || at[0] != 0 {
			t.Fatalf("%d writes at %v", len(got), at)
		}
		io.WriteString(one, "late\n")
		time.Sleep(time.Second)
		if got, _ := w.since(2); len(got) > 0 {
			t.Fatalf("%d writes in a writer that hangs", len(got))
		}
		release()
		if got, at := w.since(2); len(got) != 1 || at[0] != time.Second ||
			!strings.Contains(got[0], "late") {
			t.Fatalf("%q at %v", got, at)
		}
	})
}

// TestCastClose: Close does not wait for 10 ms to pass, and loses nothing.
func TestCastClose(t *testing.T) {
	castTest(t, func(t *testing.T, w *writes, c *cast, one, two *track) {
		io.WriteString(one, "the last\n")
		two.end("ended")
		c.close()
		if got, at := w.since(1); len(got) != 1 || at[0] != 0 ||
			!strings.Contains(got[0], "the last") || !strings.Contains(got[0], "ended") {
			t.Errorf("%q at %v", got, at)
		}
	})
}
