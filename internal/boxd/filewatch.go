//go:build linux

package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/fswatch"
)

// serveWatch is the command "boxd watch", with which the owner watches files. It prints what
// changes in a directory, or in a file, until its input ends. It is a child of boxd like the user's
// programs, with their rights.
func serveWatch(name string) error {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // also while it waits for events, or for their reader
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
