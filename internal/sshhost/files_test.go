package sshhost

import (
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A server without the subsystem is no error until files are asked for, and then one that says what to do.
func TestNoSubsystem(t *testing.T) {
	box, err := shellbox.New(t.Context(), hostOf(t, sshdtest.Start(t, "Subsystem other internal-sftp"), Config{}), shellbox.Options{})
	noError(t, err)
	defer box.Close()
	for range 12 { // more than sessions fit on a connection: none stays
		if _, err := box.Files().Stat(t.Context(), "/"); !errors.Is(err, errors.ErrUnsupported) {
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
