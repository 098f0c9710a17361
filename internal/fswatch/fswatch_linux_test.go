package fswatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// If the kernel's queue overflows, FileOverflow stands for the lost events, and later events
// follow.
func TestOverflow(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	noError(t, err)
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	noError(t, err)
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for _, name := range names {
		noError(t, os.WriteFile(name, nil, 0o600))
	}
	w, err := New(dir)
	noError(t, err)
	defer w.Close()
	for i := range limit + 10 {
		// Two files in turn: the kernel merges equal events in a row.
		noError(t, os.Chmod(names[i%2], 0o600))
	}
	var got []sandbox.FileEvent
	for len(got) <= limit {
		events, err := w.Next()
		noError(t, err)
		got = append(got, events...)
	}
	for i, e := range got[:limit] {
		if want := (sandbox.FileEvent{Op: sandbox.FileAttributes,
			Name: filepath.Base(names[i%2])}); e != want {
			t.Fatalf("event %d is %v", i, e)
		}
	}
	noError(t, os.Remove(names[0]))
	for len(got) < limit+2 {
		events, err := w.Next()
		noError(t, err)
		got = append(got, events...)
	}
	if rest := got[limit:]; !slices.Equal(rest, []sandbox.FileEvent{{Op: sandbox.FileOverflow},
		{Op: sandbox.FileRemoved, Name: "a"}}) {
		t.Errorf("then: %v", rest)
	}
}

// Events from before the removal of a directory, or of a file, are reported before its end.
func TestGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	noError(t, os.Mkdir(dir, 0o700))
	noError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	var watches []*Watch
	for _, name := range []string{dir, filepath.Join(dir, "f")} {
		w, err := New(name)
		noError(t, err)
		defer w.Close()
		watches = append(watches, w)
	}
	noError(t, os.RemoveAll(dir))
	for _, w := range watches {
		events, err := w.Next()
		if !slices.Equal(events, []sandbox.FileEvent{{Op: sandbox.FileRemoved, Name: "f"}}) ||
			err != nil {
			t.Errorf("got %v, %v", events, err)
		}
		for range 2 {
			if events, err := w.Next(); len(events) > 0 || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("at the end: %v, %v", events, err)
			}
		}
	}
}

// Close makes Next return.
func TestClose(t *testing.T) {
	w, err := New(t.TempDir())
	noError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Next()
		ended <- err
	}()
	noError(t, w.Close())
	if err := <-ended; !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
