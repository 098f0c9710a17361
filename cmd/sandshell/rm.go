package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func rmCommand() *command {
	c := newCommand("rm", "[flags] BOX...", "removes boxes with all that runs in them")
	c.more = `
A box that another program uses is removed with -force only.
`
	c.examples = `
sandshell rm BOX
sandshell rm $(sandshell ls -q)
`
	c.takes = []argument{takesBox}
	at := c.placeFlag()
	force := c.Bool("force", false, "remove boxes that end with their program, and do not mind if "+
		"there is no such box")
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 1, -1); err != nil {
			return err
		}
		var errs []error
		for _, word := range args {
			b, err := findBox(ctx, w, word)
			switch {
			case *force && errors.Is(err, errNoBox):
				continue
			case err == nil && !b.Keep && !*force && running(b):
				err = fmt.Errorf("the box %s ends with its program, process %d on %s: rm -force "+
					"takes it away from that", word, b.PID, b.Host)
			case err == nil:
				err = w.remove(ctx, b.ID)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintln(os.Stdout, word)
		}
		return errors.Join(errs...)
	}
	return c
}
