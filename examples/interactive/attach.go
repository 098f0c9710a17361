package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// attach runs a command in the session and returns its exit status. The command reads keys and
// writes to screen. A Read of keys stays behind until the program's end.
func attach(ctx context.Context, s sandbox.Session, command string, keys io.Reader,
	screen io.Writer) (status int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(typeKeys(ctx, s, keys)) }()

	res, err := s.Execute(ctx, command, sandbox.Tee(screen),
		sandbox.AtQuestion(sandbox.KeepWaiting))
	switch {
	case ctx.Err() != nil:
		return 1, context.Cause(ctx)
	case err != nil:
		return 1, err
	}
	return res.ExitCode, nil
}

// typeKeys types keys into the session's command until there are no more. It does not wait for
// their effect, because the call of Execute shows it.
func typeKeys(ctx context.Context, s sandbox.Session, keys io.Reader) error {
	buf := make([]byte, 4<<10)
	for {
		n, err := keys.Read(buf)
		if err != nil {
			return fmt.Errorf("read the keyboard: %w", err)
		}
		for {
			_, err := s.Input(ctx, string(buf[:n]), sandbox.Yield(1))
			if err == nil || ctx.Err() != nil {
				break
			}
			if !errors.Is(err, sandbox.ErrIdle) {
				return err
			}
			time.Sleep(time.Millisecond) // the person types ahead, and Execute is about to begin
		}
	}
}
