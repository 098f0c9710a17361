package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

func attachCommand() *command {
	c := newCommand("attach", "[flags] BOX", "connects the terminal to a box that is there")
	c.more = `
If a sandshell was left (with Enter ~ .) or killed while its command went on, attach goes on with
that command. Otherwise it opens one more shell. Enter ~ . leaves it running.
`
	c.examples = `
sandshell run -keep debian:stable-slim
sandshell attach BOX
`
	c.takes = []argument{takesBox}
	at := c.placeFlag()
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 1, 1); err != nil {
			return err
		}
		if !isTerminal(os.Stdin) || !isTerminal(os.Stdout) {
			return usage("attach: standard input and output are no terminals: use sandshell exec")
		}
		box, err := joinBox(ctx, w, args[0])
		if err != nil {
			return err
		}
		err = resume(ctx, box)
		if errors.Is(err, errLeft) {
			err = nil
			say("the command goes on: sandshell attach " + args[0])
		}
		return errors.Join(err, detach(box))
	}
	return c
}

// resume goes on with the last command that was left in the box, or opens a shell.
func resume(ctx context.Context, box sandbox.Sandbox) error {
	sessions := box.Sessions()
	for i := len(sessions) - 1; i >= 0; i-- {
		s := sessions[i]
		if s.ID() == "main" {
			continue // no terminal was connected to it
		}
		res, err := s.Wait(ctx, sandbox.Yield(1))
		if errors.Is(err, sandbox.ErrIdle) || errors.Is(err, sandbox.ErrBusy) {
			continue // idle, or busy with another program's call
		}
		if err != nil {
			return err
		}
		if res.State == sandbox.Exited {
			fmt.Print(printable.Text(res.Output))
			return errors.Join(statusError(res.ExitCode), s.Close())
		}
		return withTerminal(ctx, s, func(ctx context.Context) (*sandbox.Result, error) {
			return res, redraw(ctx, s)
		}, sandbox.Tee(os.Stdout))
	}
	return onTerminal(ctx, box, execution{})
}

// redraw shows what the session's terminal shows.
func redraw(ctx context.Context, s sandbox.Session) error {
	if rows, cols, known := terminalSize(); known {
		if err := s.Resize(ctx, rows, cols); err != nil {
			return err
		}
	}
	screen, err := s.Screen(ctx)
	if err != nil {
		return err
	}
	lines := make([]string, len(screen.Lines))
	for i, l := range screen.Lines {
		lines[i] = printable.Line(l)
	}
	fmt.Printf("\x1b[2J\x1b[H%s\x1b[%d;%dH", strings.Join(lines, "\r\n"), screen.Row+1,
		screen.Col+1)
	return nil
}
