//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// newSandbox makes a sandbox of a box in namespaces. Its files are this machine's.
func newSandbox(t testing.TB) (*shellbox.Box, *way) {
	t.Helper()
	h, w := newHost(t)
	// t's has ended in a Cleanup
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
	defer cancel()
	sb, err := shellbox.New(ctx, h, shellbox.Options{Dir: w.b.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb, w
}

// fileServers are the file servers of a box.
func fileServers(t testing.TB, sb sandbox.Sandbox) []int {
	t.Helper()
	return boxdPrograms(t, sb, "files")
}

// boxdPrograms are the programs of a box that have this argument. (In a pipeline grep, which has
// the argument too, would be among them.)
func boxdPrograms(t testing.TB, sb sandbox.Sandbox, argument string) (pids []int) {
	t.Helper()
	var out bytes.Buffer
	_, err := sb.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
		`mount -t proc proc /proc; grep -lxz ` + argument + ` /proc/[0-9]*/cmdline`}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		pid, err := strconv.Atoi(strings.Split(line, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// Calls survive cuts, and nothing is done twice.
func TestFilesCut(t *testing.T) {
	sb, w := newSandbox(t)
	f := sb.Files()
	name := filepath.Join(w.b.dir, "f")
	for i := range 20 {
		cut := func(what string, do func() error) {
			t.Helper()
			var cutting sync.WaitGroup
			cutting.Go(func() {
				time.Sleep(time.Duration(rand.IntN(5_000)) * time.Microsecond)
				w.cut()
			})
			if err := do(); err != nil {
				t.Fatal(what, err)
			}
			cutting.Wait()
		}
		content := bytes.Repeat([]byte{byte(i)}, 2<<20)
		cut("write", func() error { return f.WriteFile(t.Context(), name, content, 0o600) })
		cut("read", func() error {
			got, err := f.ReadFile(t.Context(), name, 0)
			if err == nil && !bytes.Equal(got, content) {
				err = fmt.Errorf("%d bytes of another content", len(got))
			}
			return err
		})
		dir := fmt.Sprintf("%s/%d", w.b.dir, i)
		cut("make, rename, remove", func() error {
			err := f.MkdirAll(t.Context(), dir, 0o700)
			err = cmp.Or(err, f.Rename(t.Context(), name, dir+"/f"))
			err = cmp.Or(err, f.Remove(t.Context(), dir+"/f"))
			return cmp.Or(err, f.Remove(t.Context(), dir))
		})
	}
	if left, err := f.Glob(t.Context(), w.b.dir+"/*"); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A file server that was killed or hangs is replaced. The call under way returns an error.
func TestFilesKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			sb, w := newSandbox(t)
			f := sb.Files()
			name := filepath.Join(w.b.dir, "f")
			if err := f.WriteFile(t.Context(), name, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			open, err := f.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			pids := fileServers(t, sb)
			if len(pids) != 1 {
				t.Fatalf("file servers: %v", pids)
			}
			if code, err := sb.Run(t.Context(), &sandbox.Cmd{
				Args: []string{"kill", fmt.Sprintf("-%d", sig),
					strconv.Itoa(pids[0])}}); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			if sig == syscall.SIGSTOP {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if err := f.WriteFile(ctx, name, []byte("new"), 0o600); !errors.Is(err,
					context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				open.Close() // the last use of the file server, which is then killed
			} else if err := f.WriteFile(t.Context(), name, []byte("old"), 0o600); err != nil &&
				!errors.Is(err, sandbox.ErrCut) {
				t.Errorf("got %v", err)
			}
			if got, err := f.ReadFile(t.Context(), name, 0); string(got) != "old" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if _, err := open.ReadAt(make([]byte, 1), 0); sig == syscall.SIGKILL &&
				!errors.Is(err, sandbox.ErrCut) || err == nil {
				t.Errorf("an open file: %v", err)
			}
			open.Close()
			waitFor(t, "one file server", func() bool {
				now := fileServers(t, sb)
				return len(now) == 1 && now[0] != pids[0]
			})
			if left, err := filepath.Glob(filepath.Dir(name) + "/.sandshell-*"); err != nil ||
				len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// A write whose file server is killed in the middle leaves no file: the next server removes it.
func TestFilesKilledInTheMiddle(t *testing.T) {
	sb, w := newSandbox(t)
	f := sb.Files()
	name := filepath.Join(w.b.dir, "f")
	if err := f.WriteFile(t.Context(), name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	pids := fileServers(t, sb)
	written := make(chan error, 1)
	go func() { written <- f.WriteFile(t.Context(), name, make([]byte, 200<<20), 0o600) }()
	waitFor(t, "a temporary file", func() bool {
		left, _ := filepath.Glob(w.b.dir + "/.sandshell-*")
		return len(left) > 0
	})
	if _, err := sb.Run(t.Context(), &sandbox.Cmd{Args: []string{"kill", "-9",
		strconv.Itoa(pids[0])}}); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		if !errors.Is(err, sandbox.ErrCut) {
			t.Errorf("got %v", err)
		}
		if got, err := os.ReadFile(name); string(got) != "old" || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	}
	if left, err := filepath.Glob(w.b.dir + "/.sandshell-*"); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Detach ends the file server. A host that attaches gets a new one.
func TestFilesDetach(t *testing.T) {
	h, w := newHost(t)
	first, err := shellbox.New(t.Context(), h, shellbox.Options{Dir: w.b.dir})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(w.b.dir, "f")
	if err := first.Files().WriteFile(t.Context(), name, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := first.Files().Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Detach(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(open); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("an open file: %v", err)
	}
	if _, err := first.Files().Stat(t.Context(), name); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("after Detach: %v", err)
	}
	next, err := shellbox.Attach(t.Context(), w.connect(t), shellbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if pids := fileServers(t, next); len(pids) > 0 {
		t.Errorf("left: %v", pids)
	}
	if got, err := next.Files().ReadFile(t.Context(), "f", 0); string(got) != "content" ||
		err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// A watch loses no event in a cut. If its program is killed, it returns an error. After its loop is
// left, and after its program is killed, no program of it remains.
func TestWatchCut(t *testing.T) {
	sb, w := newSandbox(t)
	dir := filepath.Join(w.b.dir, "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	events, err := sb.Files().Watch(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	unread, err := sb.Files().Watch(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	const files = 500
	made := make(chan error, 1)
	go func() {
		for i := range files {
			if i%200 == 0 {
				w.cut()
			}
			if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700); err != nil {
				made <- err
				return
			}
		}
		made <- nil
	}()
	seen := 0
	for e, err := range events {
		if want := (sandbox.FileEvent{Op: sandbox.FileCreated,
			Name: strconv.Itoa(seen)}); e != want ||
			err != nil {
			t.Fatalf("got %v, %v, want %v", e, err, want)
		}
		if seen++; seen == files {
			break
		}
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	pids := boxdPrograms(t, sb, "watch")
	if len(pids) != 1 {
		t.Fatalf("programs that watch: %v", pids)
	}
	if code, err := sb.Run(t.Context(), &sandbox.Cmd{
		Args: []string{"kill", "-KILL", strconv.Itoa(pids[0])}}); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	var last error
	for _, last = range unread {
	}
	if !errors.Is(last, sandbox.ErrCut) {
		t.Errorf("got %v", last)
	}
	if left := boxdPrograms(t, sb, "watch"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
