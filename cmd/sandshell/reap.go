package main

import (
	"context"
	"fmt"
)

func reapCommand() *command {
	c := newCommand("reap", "[flags]", "removes what is left of boxes whose program was killed")
	c.more = `
Boxes that run stay. It prints how many boxes it has removed.
`
	c.examples = `
sandshell reap
sandshell reap -place local
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
		removed, err := w.reap(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(struct {
				Removed int `json:"removed"`
			}{removed})
		}
		fmt.Println(removed)
		return nil
	}
	return c
}
