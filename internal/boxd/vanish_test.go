//go:build linux

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/sftp"
)

// TestClientVanishes cuts a client's connection in each state in which boxd has something to end.
func TestClientVanishes(t *testing.T) {
	b := startBox(t)
	watcher := b.owner()
	before := b.steady()
	for name, command := range map[string]string{
		"terminal": "trap 'echo hup > $0.hup; exit' HUP; echo ready; while :; do sleep " +
			"0.01; done",
		"terminal's output": "echo ready; yes",
		"input":             "echo ready; cat > /dev/null; echo > $0.eof",
		"output":            "echo ready; yes; echo > $0.pipe",
		"output's reader":   "echo ready; trap '' PIPE; yes 2>/dev/null; echo > $0.error",
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			b.admit(key)
			client, err := b.login(key)
			if err != nil {
				t.Fatal(err)
			}
			s := newSession(t, client)
			if strings.HasPrefix(name, "terminal") {
				if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
					t.Fatal(err)
				}
			}
			s.StdinPipe()
			out, _ := s.StdoutPipe()
			mark := filepath.Join(b.dir, strings.ReplaceAll(name, "'", ""))
			command = strings.ReplaceAll(command, "'", `'\''`)
			if err := s.Start(fmt.Sprintf("exec sh -c '%s' '%s'", command, mark)); err != nil {
				t.Fatal(err)
			}
			var ready [5]byte
			if _, err := io.ReadFull(out, ready[:]); err != nil || string(ready[:]) != "ready" {
				t.Fatalf("%q, %v", ready, err)
			}
			client.Close()
			waitFor(t, "its processes are gone", func() bool {
				out, _, err := runs(t, watcher, "ps -eo args | grep -v grep | grep -c -e 'ready.*"+
					b.dir+"' -e '^yes' -e '^cat'")
				return strings.TrimSpace(out) == "0" && err != nil
			})
		})
	}
	marks, _ := filepath.Glob(filepath.Join(b.dir, "*.*"))
	var names []string
	for _, m := range marks {
		names = append(names, filepath.Base(m))
	}
	if got, want := strings.Join(names, ","), "input.eof,output.pipe,outputs "+
		"reader.error,terminal.hup"; got != want {
		t.Errorf("they noticed %s", got)
	}
	b.settled(before)
}

func TestNothingIsLeft(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	runs(t, client, "true")
	before := b.steady()
	for range 20 {
		runs(t, client, "echo x; echo y >&2")
		s := newSession(t, client)
		s.RequestPty("xterm", 24, 80, nil)
		s.Run("echo x")
		s.Close()
		abandoned := newSession(t, client) // has a terminal, on which nothing runs
		abandoned.RequestPty("xterm", 24, 80, nil)
		abandoned.Close()
		files, err := sftp.NewClient(client)
		if err != nil {
			t.Fatal(err)
		}
		files.Open("/etc/hostname") // and not closed
		files.Close()
	}
	b.settled(before)
}
