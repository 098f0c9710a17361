package sshhost

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Of a server without the subsystem, files are reached by a shell.
func TestNoSubsystem(t *testing.T) {
	box, err := shellbox.New(t.Context(), hostOf(t, sshdtest.Start(t, "Subsystem other internal-sftp"), Config{}), shellbox.Options{})
	noError(t, err)
	defer box.Close()
	f, dir := box.Files(), t.TempDir()
	content := bytes.Repeat([]byte("line\n"), 300_000)
	noError(t, f.WriteFile(t.Context(), dir+"/f", content, 0o640))
	for range 12 { // more than sessions fit on a connection: none stays
		got, err := f.ReadFile(t.Context(), dir+"/f", 0)
		noError(t, err)
		if !bytes.Equal(got, content) {
			t.Fatalf("other content, of %d bytes", len(got))
		}
		if _, err := f.Stat(t.Context(), dir+"/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("got %v", err)
		}
	}
}

// The end of the connection is that of the box, for calls and for open files.
func TestFilesLost(t *testing.T) {
	s, proxy := sshdtest.Start(t).Through(t)
	box, err := shellbox.New(t.Context(), hostOf(t, s, Config{}), shellbox.Options{})
	noError(t, err)
	defer box.Close()
	f := box.Files()
	name := filepath.Join(t.TempDir(), "f")
	noError(t, f.WriteFile(t.Context(), name, []byte("content"), 0o600))
	file, err := f.Open(t.Context(), name)
	noError(t, err)
	written := make(chan error, 1)
	go func() {
		for {
			if err := f.WriteFile(t.Context(), name, make([]byte, 1<<20), 0o600); err != nil {
				written <- err
				return
			}
		}
	}()
	proxy.Cut()
	select {
	case err := <-written:
		if !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("a write under way: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a write does not end")
	}
	if _, err := io.ReadAll(file); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("an open file: %v", err)
	}
	if _, err := f.ReadDir(t.Context(), "/"); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("a call: %v", err)
	}
}
