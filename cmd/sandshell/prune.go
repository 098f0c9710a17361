package main

import (
	"context"
	"fmt"

	"github.com/sandshell/sandshell/internal/printable"
)

func pruneCommand() *command {
	c := newCommand("prune", "[flags]", "removes what a place keeps for later boxes")
	c.more = `
These are images with plugins, built images, caches of packages, and boxd of other versions; of a
machine, boxd's programs; of a cluster, the network policy. All are made again when needed. What a
box uses stays. It prints the names of images and volumes.
`
	c.examples = `
sandshell prune
sandshell prune -place ssh://me@build-1
`
	at := c.placeFlag()
	asJSON := c.jsonFlag()
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 0, 0); err != nil {
			return err
		}
		p, err := w.prune(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			p.Images, p.Volumes = append([]string{}, p.Images...), append([]string{}, p.Volumes...)
			return printJSON(p)
		}
		for _, name := range append(p.Images, p.Volumes...) {
			fmt.Println(printable.Line(name))
		}
		return nil
	}
	return c
}
