//go:build linux

package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/fswatch"
)

// serveWatch is the program with which the owner watches files: it prints what changes in a
// directory, or of a file, until its input ends. It is a child like the user's programs, with their
// rights.
func serveWatch(name string) error {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // whatever it waits for: events, or their reader
	}()
	lines := json.NewEncoder(os.Stdout)
	w, err := fswatch.New(name)
	if err == nil {
		defer w.Close()
		err = lines.Encode(wire.FileEvents{})
	}
	for err == nil {
		var line wire.FileEvents
		events, nerr := w.Next()
		if nerr != nil {
			err = nerr
			break
		}
		for _, e := range events {
			line.Events = append(line.Events, wire.FileEvent{Op: int(e.Op), Name: []byte(e.Name),
				From: []byte(e.From)})
		}
		err = lines.Encode(line)
	}
	return lines.Encode(wire.FileEvents{Failed: wire.Fail(err).Encode()})
}
