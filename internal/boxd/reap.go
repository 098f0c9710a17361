//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/procfs"
	"golang.org/x/sys/unix"
)

// list prints a line for each box of this machine, as JSON.
func list(parent string) error {
	err := eachBox(parent, func(_ string, box *wire.Machine) error {
		// If the boot id differs, the box runs on another machine with the same home.
		if box.Boot != "" && (box.Ended || box.Boot == bootID()) {
			return json.NewEncoder(os.Stdout).Encode(box)
		}
		return nil
	})
	if err == nil {
		fmt.Println(wire.ListEnd)
	}
	return err
}

// reap removes the remnants of killed boxes, and prints how many boxes they were of.
func reap(parent string) error {
	n, err := reapAll(parent)
	if err == nil {
		fmt.Println(n)
	}
	return err
}

// reapAll removes what is left of boxes whose boxd was killed: the programs that still run, and the
// directory.
func reapAll(parent string) (removed int, err error) {
	err = eachBox(parent, func(dir string, box *wire.Machine) error {
		if !box.Ended {
			return nil
		}
		marks, _ := os.ReadFile(filepath.Join(dir, machineMarks))
		if box.Boot == bootID() {
			for word := range strings.FieldsSeq(string(marks)) {
				// The directory is removed even after an error.
				procfs.EndMarked(context.Background(), word, 0)
			}
		}
		removed++
		return os.RemoveAll(dir)
	})
	return removed, err
}

// makingLimit is the age at which a directory with an unfinished box is taken for abandoned.
const makingLimit = time.Minute

// eachBox calls f for each box in parent, whether its boxd runs or has ended. If boxd has ended,
// this process holds the box's lock during the call.
func eachBox(parent string, f func(dir string, box *wire.Machine) error) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		kind, id, ok := strings.Cut(e.Name(), "-")
		if !ok || !e.IsDir() || kind != "box" && kind != "new" {
			continue
		}
		if info, err := e.Info(); kind == "new" &&
			(err != nil || time.Since(info.ModTime()) < makingLimit) {
			continue // its boxd is being started
		}
		if err := withBox(filepath.Join(parent, e.Name()), id, f); err != nil {
			return err
		}
	}
	return nil
}

// withBox calls f for one box.
func withBox(dir, id string, f func(dir string, box *wire.Machine) error) error {
	box := &wire.Machine{ID: id}
	file, err := os.OpenFile(filepath.Join(dir, machineInfo), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // the box is being removed, or was never finished
		box.Ended = true
		return f(dir, box)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil && err != unix.EWOULDBLOCK {
		return err
	}
	json.NewDecoder(file).Decode(box) // fields that cannot be read stay empty
	box.Ended = err == nil
	return f(dir, box)
}
