package main

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
)

func cpCommand() *command {
	c := newCommand("cp", "[flags] SOURCE BOX:DESTINATION | BOX:SOURCE DESTINATION",
		"copies files and directories into a box or out of it")
	c.more = `
If the destination is an existing directory, the copy is made in it. A relative path in the box
starts at its directory, and "~/" at the user's home. A path here that has a ":" begins with "./"
or "/".
`
	c.examples = `
sandshell cp src BOX:/tmp
sandshell cp BOX:/tmp/report.txt .
`
	c.takes = []argument{takesCopy}
	at := c.placeFlag()
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 2, 2); err != nil {
			return err
		}
		fromBox, source := splitPath(args[0])
		toBox, destination := splitPath(args[1])
		if (fromBox == "") == (toBox == "") {
			return usage("cp: one of the paths, and only one, is in a box: write it as BOX:PATH")
		}
		if source == "" || destination == "" {
			return usage("cp: a path is empty: write BOX:. for the box's directory")
		}
		box, err := joinBox(ctx, w, fromBox+toBox)
		if err != nil {
			return err
		}
		if toBox != "" {
			err = box.CopyTo(ctx, source, destination)
		} else {
			err = box.CopyFrom(ctx, source, destination)
		}
		return errors.Join(err, detach(box))
	}
	return c
}

// splitPath splits "BOX:PATH". If text is a path of this machine, box is "".
func splitPath(text string) (box, path string) {
	box, path, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsAny(box, `/\`) || strings.HasPrefix(box, ".") ||
		runtime.GOOS == "windows" && filepath.VolumeName(text) != "" {
		return "", text
	}
	return box, path
}
