//go:build linux

package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/fswatch"
	"github.com/sandshell/sandshell/sandbox"
)

// serveWatch is the command "boxd watch", with which the owner watches files. It prints what
// changes in a directory, or in a file, until its input ends. It is a child of boxd like the user's
// programs, with their rights.
func serveWatch(name string) error {
	return printChanges(func() (fileWatch, error) { return fswatch.New(name) })
}

// serveWatchTree is the command "boxd watch-tree", which does so for all below a directory.
func serveWatchTree(name string) error {
	return printChanges(func() (fileWatch, error) { return fswatch.NewTree(name) })
}

// A fileWatch is a fswatch.Watch or a fswatch.Tree.
type fileWatch interface {
	Next() ([]sandbox.FileEvent, error)
	Close() error
}

func printChanges(begin func() (fileWatch, error)) error {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // also while it waits for events, or for their reader
	}()
	lines := json.NewEncoder(os.Stdout)
	w, err := begin()
	if err == nil {
		defer w.Close()
		err = lines.Encode(wire.FileEvents{})
	}
	for err == nil {
		events, nerr := w.Next()
		if nerr != nil {
			err = nerr
			break
		}
		for len(events) > 0 && err == nil {
			var line wire.FileEvents
			for size := 0; len(events) > 0 && size < eventsPiece; events = events[1:] {
				e := events[0]
				line.Events = append(line.Events, wire.FileEvent{Op: int(e.Op),
					Name: []byte(e.Name), From: []byte(e.From)})
				size += eventCost + len(e.Name) + len(e.From)
			}
			err = lines.Encode(line)
		}
	}
	return lines.Encode(wire.FileEvents{Failed: wire.Fail(err).Encode()})
}

// The events of a line take eventsPiece bytes and one event more, so that JSON and base64 stay
// below wire.FileEventsMax. A path has at most 4096 bytes.
const (
	eventsPiece = 64 << 10
	eventCost   = 64
)
