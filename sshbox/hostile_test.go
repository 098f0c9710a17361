package sshbox

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
)

//go:embed testdata/hostile.py
var hostileServer string

// TestHostileFileServer has a file server, behind an sshd without boxd, make false claims.
func TestHostileFileServer(t *testing.T) {
	read := func(limit int64) func(context.Context, sandbox.Files) error {
		return func(ctx context.Context, f sandbox.Files) error {
			_, err := f.ReadFile(ctx, "/etc/hostname", limit)
			return err
		}
	}
	stat := func(ctx context.Context, f sandbox.Files) error {
		_, err := f.Stat(ctx, "/etc/hostname")
		return err
	}
	list := func(ctx context.Context, f sandbox.Files) error {
		_, err := f.ReadDir(ctx, "/etc")
		return err
	}
	for _, c := range []struct {
		mode, call string
		do         func(context.Context, sandbox.Files) error
		wantError  string
		time       time.Duration
	}{
		{"size", "ReadFile", read(0), "18446744073709551614", 0},
		{"size", "Stat", stat, "18446744073709551614", 0},
		{"negative", "ReadFile", read(0), "9223372036854775808", 0},
		{"claim", "ReadFile", read(0), "", 0},
		{"claim", "ReadFileLarge", read(1 << 50), "deadline", time.Second},
		{"endless", "ReadFile", read(0), "", 0},
		{"list", "ReadDir", list, "20 MiB", 0},
		{"short", "ReadDir", list, "20 MiB", 0},
		{"pairs", "ReadDir", list, "20 MiB", 0},
		{"packet", "Stat", stat, "", 3 * time.Second},
		{"order", "Stat", stat, "", 3 * time.Second},
		{"silent", "Stat", stat, "deadline", 100 * time.Millisecond},
	} {
		hostiletest.Case{Name: c.mode + c.call, Call: func(ctx context.Context,
			t *testing.T) error {
			program := filepath.Join(t.TempDir(), "sftp")
			noError(t, os.Chmod(filepath.Dir(program), 0o755))
			noError(t, os.WriteFile(program, []byte("#!/usr/bin/python3\n"+hostileServer), 0o755))
			s := startSSHD(t, "Subsystem sftp /usr/bin/env HOSTILE="+c.mode+" "+program)
			box, err := Dial(testContext(t), s.config())
			noError(t, err)
			defer box.Close()
			return c.do(ctx, box.Files())
		}, Says: c.wantError, Time: c.time}.Run(t)
	}
}

// TestStreamsOfOthers shows that a program of the same user cannot open the streams of boxd's
// programs.
func TestStreamsOfOthers(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none"})
	ctx := testContext(t)
	files := box.Files()
	noError(t, files.WriteFile(ctx, "/tmp/hostile.py", []byte(hostileServer), 0o755))
	events, err := files.Watch(ctx, "/tmp")
	noError(t, err)
	for _, server := range []string{"files", "watch"} {
		expect(t, box, "python3 /tmp/hostile.py size "+server, 0,
			strings.Repeat("open: No such device or address\n"+
				"pidfd_getfd: Operation not permitted\n", 2)+"refused\n")
	}
	noError(t, files.WriteFile(ctx, "/tmp/new", []byte("text"), 0o600))
	for e, err := range events {
		noError(t, err)
		if e.Op != sandbox.FileCreated || e.Name != "new" {
			t.Errorf("the watch reports %+v", e)
		}
		break
	}
}

// TestHostileContainer replaces programs of a container by ones that print without end. The
// programs of boxd can be replaced too, because this box may trace them.
func TestHostileContainer(t *testing.T) {
	box := newBox(t, Config{Image: testImage, Network: "none", Memory: 512 << 20,
		CapAdd: []string{"SYS_PTRACE"}})
	noError(t, box.Files().WriteFile(testContext(t), "/tmp/hostile.py", []byte(hostileServer),
		0o755))
	expect(t, box,
		`mkdir -p /tmp/w; printf '#!/bin/bash\nexec yes %s\n' "$(printf 'A%.0s' $(seq 100))" >/tmp/yes; chmod +x /tmp/yes`, 0, "")
	type caseCall = func(context.Context, *testing.T) error
	// replace puts a program that prints without end in place of a program of the box, during call.
	replace := func(program string, call func(context.Context) error) caseCall {
		return func(ctx context.Context, t *testing.T) error {
			expect(t, box, "p=$(command -v "+program+" || echo /usr/local/bin/"+program+
				"); [ ! -e $p ] || cp -P $p /tmp/kept; cp /tmp/yes /tmp/new; mv /tmp/new $p", 0, "")
			defer expect(t, box, "p=$(command -v "+program+
				"); if [ -e /tmp/kept ] || [ -L /tmp/kept ]; then mv /tmp/kept $p; else rm $p; fi",
				0, "")
			return call(ctx)
		}
	}
	// takeStreams calls begin, which starts a program of boxd, and has hostile.py take over that
	// program's streams during call.
	takeStreams := func(mode, server string, begin, call func(context.Context) error) caseCall {
		return func(ctx context.Context, t *testing.T) error {
			noError(t, begin(ctx))
			expect(t, box, "rm -f /tmp/attack", 0, "") // of the case before
			attack, err := box.Background(ctx, "exec python3 /tmp/hostile.py "+mode+" "+server+
				" >/tmp/attack 2>&1")
			noError(t, err)
			defer func() {
				noError(t, attack.Kill(testContext(t)))
				expect(t, box, "kill -KILL $(sed -n 's/stopped //p' /tmp/attack) 2>/dev/null; true",
					0, "")
			}()
			expect(t, box, "until grep -qs stopped /tmp/attack; do sleep 0.01; done", 0, "")
			return call(ctx)
		}
	}
	files := box.Files()
	open := func(ctx context.Context) error {
		_, err := files.Stat(ctx, "/")
		for errors.Is(err, sandbox.ErrCut) { // if the case before has killed the server
			_, err = files.Stat(ctx, "/")
		}
		return err
	}
	list := func(ctx context.Context) error { _, err := files.ReadDir(ctx, "/etc"); return err }
	read := func(ctx context.Context) error {
		_, err := files.ReadFile(ctx, "/etc/hostname", 0)
		return err
	}
	write := func(ctx context.Context) error {
		return files.WriteFile(ctx, "/tmp/written", nil, 0o600)
	}
	var events func(func(sandbox.FileEvent, error) bool)
	watch := func(ctx context.Context) error {
		seq, err := files.Watch(ctx, "/tmp/w")
		events = seq
		return err
	}
	next := func(context.Context) (last error) {
		for _, err := range events {
			last = err
		}
		return last
	}
	for _, c := range []hostiletest.Case{
		{Name: "ReadFileTaken", Call: takeStreams("size", "files", open, read),
			Says: "18446744073709551614"},
		{Name: "ReadDirTaken", Call: takeStreams("list", "files", open, list), Says: "20 MiB"},
		{Name: "EntriesTaken", Call: takeStreams("entries", "files", open, list),
			Says: "18446744073709551614"},
		{Name: "MessageTaken", Call: takeStreams("message", "files", open, write), Says: "ended"},
		{Name: "WatchTaken", Call: takeStreams("line", "watch", watch, next), Says: "KiB"},
		{Name: "ExecuteCLI", Call: replace("execute_cli", func(ctx context.Context) error {
			_, err := jupyter.Connect(ctx, box, jupyter.Config{})
			return err
		}), Says: "64 KiB"},
		{Name: "PluginsSh", Call: replace("sh", func(ctx context.Context) error {
			return box.InitPlugins(ctx, plugin.Plugin{Name: "p",
				Files: fstest.MapFS{"setup.sh": {Data: []byte("true\n"), Mode: 0o755}}})
		}), Says: "MiB"},
		{Name: "PluginSetup", Call: func(ctx context.Context, t *testing.T) error {
			return box.InitPlugins(ctx, plugin.Plugin{Name: "q", Timeout: time.Second,
				Files: fstest.MapFS{"setup.sh": {Data: []byte("exec yes AAAAAAAAAAAAAAAA\n"),
					Mode: 0o755}}})
		}, Time: time.Minute},
		{Name: "Pytool", Call: replace("sh", func(ctx context.Context) error {
			_, err := (&pytool.Tool{Function: "f", Source: "def f(): pass"}).Call(ctx, box,
				pytool.Call{Timeout: 2 * time.Second})
			return err
		})},
		{Name: "Browser", Call: replace("sh", func(ctx context.Context) error {
			_, err := browser.Open(ctx, box, browser.Config{})
			return err
		}), Says: "4 KiB", Time: 3 * time.Second},
	} {
		c.Run(t)
	}
}
