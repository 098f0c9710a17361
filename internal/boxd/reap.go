//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/sys/unix"
)

// list prints a line for each box of this machine, as JSON.
func list(parent string) error {
	err := eachBox(parent, func(_ string, box *wire.Machine) error {
		// else it runs on another machine with the same home
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

// reap prints how many boxes it has removed the remnants of.
func reap(parent string) error {
	n, err := reapAll(parent)
	if err == nil {
		fmt.Println(n)
	}
	return err
}

// reapAll removes what is left of boxes whose boxd was killed: programs that still run, and the
// directory.
func reapAll(parent string) (removed int, err error) {
	err = eachBox(parent, func(dir string, box *wire.Machine) error {
		if !box.Ended {
			return nil
		}
		marks, _ := os.ReadFile(filepath.Join(dir, machineMarks))
		if box.Boot == bootID() {
			for word := range strings.FieldsSeq(string(marks)) {
				killMarked(word)
			}
		}
		removed++
		return os.RemoveAll(dir)
	})
	return removed, err
}

// halfMade is how old a directory is that nobody will go on making.
const halfMade = time.Minute

// eachBox calls f for each box in parent: one that runs, and one whose boxd has ended and that is
// this process's meanwhile.
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
			(err != nil || time.Since(info.ModTime()) < halfMade) {
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
	if errors.Is(err, fs.ErrNotExist) { // it is being removed, or was never made
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
	json.NewDecoder(file).Decode(box) // what cannot be read is empty
	box.Ended = err == nil
	return f(dir, box)
}
