package sshlogin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// List returns the user's boxes on the machine, including those that have ended.
func (m *Machine) List(ctx context.Context, h Login) ([]wire.Machine, error) {
	boxes, _, err := m.list(ctx, h)
	return boxes, err
}

// listMax bounds the memory for a list of boxes: some thousands.
const listMax = 4 << 20

// list returns the boxes and the directory of boxd.
func (m *Machine) list(ctx context.Context,
	h Login) (boxes []wire.Machine, dir string, err error) {
	p, line, dir, err := m.run(ctx, h, "list")
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	if boxes, err = readList(line, bufio.NewReader(p.Stdout())); err != nil && ctx.Err() != nil {
		err = ctxerr.Of(ctx)
	}
	return boxes, dir, err
}

// readList reads the output of boxd list. line is its first line.
func readList(line string, lines *bufio.Reader) (boxes []wire.Machine, err error) {
	for list := (bounded.List{What: "what boxd list prints", Max: listMax}); line != wire.ListEnd; {
		if err := list.Add(len(line)); err != nil {
			return nil, err
		}
		var box wire.Machine
		if err := json.Unmarshal([]byte(line), &box); err != nil {
			return nil, fmt.Errorf("boxd list says %.1000q", line)
		}
		boxes = append(boxes, box)
		if line, err = bounded.Line(lines, "a line of boxd list", 64<<10); err != nil {
			return nil, fmt.Errorf("boxd list: its output is cut short: %w", err)
		}
	}
	return boxes, nil
}

// Find returns a box that runs. If Find succeeds, the box owns h; otherwise the caller still does.
// If there is no such box, the error is a *NoBoxError.
func (m *Machine) Find(ctx context.Context, h Login, id string) (*Box, error) {
	boxes, dir, err := m.list(ctx, h)
	if err != nil {
		return nil, err
	}
	for _, box := range boxes {
		if box.ID == id && !box.Ended {
			found := m.box(dir, id, box.Linger, box.Keep)
			found.login = h
			return found, nil
		}
	}
	return nil, &NoBoxError{id}
}

// A NoBoxError says that no box with that id runs on the machine.
type NoBoxError struct{ ID string }

func (e *NoBoxError) Error() string {
	return fmt.Sprintf("no box %q runs there, for this user and with this DialConfig.Boxd", e.ID)
}

// Reap removes the files of boxes whose boxd was killed, and returns how many boxes these were.
func (m *Machine) Reap(ctx context.Context, h Login) (removed int, err error) {
	p, line, _, err := m.run(ctx, h, "reap")
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if removed, err = strconv.Atoi(line); err != nil {
		return 0, fmt.Errorf("boxd reap says %q", line)
	}
	return removed, nil
}

// Prune removes boxd from the machine, in every version that Start has brought.
func (m *Machine) Prune(ctx context.Context, h Login) error {
	p, words, err := m.ask(ctx, h, []string{"/bin/sh", "-c", pruneScript, "sh", m.Dir})
	if err != nil {
		return err
	}
	p.Close()
	if words[0] != "pruned" {
		return fmt.Errorf("remove boxd from the machine: %s", strings.Join(words[1:], " "))
	}
	return nil
}
