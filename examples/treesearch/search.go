package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/sandshell/sandshell/sshbox"
)

// A command is something to try.
type command struct{ name, text string }

// A node is a box that the search may go on with.
type node struct {
	box      *sshbox.DockerSSHBox
	path     []string // the names of the commands that led to it
	state    string
	distance int
}

// search is a best-first search. It forks the box that look finds to be nearest to a solution, with
// a copy for each command, until a copy is a solution. It returns the names of the commands that
// led there. Copies in a state that another box has had are closed. search closes all boxes, also
// root. Each level is a layer more in the copies' image, and the engine allows 125.
func search(ctx context.Context, root *sshbox.DockerSSHBox, commands []command,
	look func(context.Context, *sshbox.DockerSSHBox) (string, int, error), forks int,
	out io.Writer) (path []string, err error) {
	open := []node{{box: root}} // the nearest last
	defer func() {
		for _, n := range open {
			err = errors.Join(err, n.box.Close())
		}
	}()
	if open[0].state, open[0].distance, err = look(ctx, root); err != nil {
		return nil, err
	}
	seen := map[string]bool{open[0].state: true}
	for range forks {
		if len(open) == 0 {
			return nil, errors.New("no commands lead to a solution")
		}
		nearest := open[len(open)-1]
		if nearest.distance == 0 {
			return nearest.path, nil
		}
		fmt.Fprintf(out, "%-6s after %d commands: trying %d more\n", nearest.state,
			len(nearest.path), len(commands))
		copies, err := tryAll(ctx, nearest, commands, look)
		if err != nil {
			return nil, err
		}
		open = open[:len(open)-1]
		err = nearest.box.Close()
		for _, n := range copies {
			if seen[n.state] {
				err = errors.Join(err, n.box.Close())
				continue
			}
			seen[n.state] = true
			open = append(open, n)
		}
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(open, func(a, b node) int { return b.distance - a.distance })
	}
	return nil, fmt.Errorf("no solution after %d forks: raise -forks", forks)
}

// tryAll forks a box, and runs another command in each copy.
func tryAll(ctx context.Context, from node, commands []command,
	look func(context.Context, *sshbox.DockerSSHBox) (string, int, error)) ([]node, error) {
	boxes, err := from.box.Fork(ctx, len(commands))
	if err != nil {
		return nil, err
	}
	copies := make([]node, len(boxes))
	errs := make([]error, len(boxes))
	var all sync.WaitGroup
	for i, box := range boxes {
		copies[i] = node{box: box, path: append(slices.Clone(from.path), commands[i].name)}
		all.Go(func() {
			n := &copies[i]
			if _, errs[i] = execute(ctx, box, commands[i].text); errs[i] == nil {
				n.state, n.distance, errs[i] = look(ctx, box)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, box := range boxes {
			err = errors.Join(err, box.Close())
		}
		return nil, err
	}
	return copies, nil
}
