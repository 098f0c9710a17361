package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/sandshell/sandshell/internal/printable"
)

func lsCommand() *command {
	c := newCommand("ls", "[flags]", "lists boxes")
	c.more = `
It lists the boxes of all programs, also what is left of boxes that have ended, the youngest first.
Boxes with "kept" stay until sandshell rm. The others end with their program.
`
	c.examples = `
sandshell ls
sandshell ls -json
sandshell rm $(sandshell ls -q)
`
	at := c.placeFlag()
	asJSON := c.jsonFlag()
	names := c.Bool("q", false, "print only the names of boxes that are kept")
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 0, 0); err != nil {
			return err
		}
		boxes, err := w.list(ctx)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return printJSON(boxes)
		case *names:
			for _, b := range boxes {
				if b.Keep {
					fmt.Println(b.handle())
				}
			}
			return nil
		}
		return writeBoxes(os.Stdout, boxes)
	}
	return c
}

// writeBoxes writes a table. It escapes names, images and hosts, which other programs have chosen.
func writeBoxes(w io.Writer, boxes []boxInfo) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tIMAGE\tSTATE\tAGE\tKEPT\tPROGRAM")
	for _, b := range boxes {
		kept := "-"
		if b.Keep {
			kept = "kept"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d on %s\n", printable.Line(b.handle()),
			orDash(b.Image), orDash(b.State), units.HumanDuration(time.Since(b.Created)), kept,
			b.PID, orDash(b.Host))
	}
	return t.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable.Line(s)
}
