package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// attach runs command in the session, with the keys as its input and the screen as its output, and
// returns its exit status. It leaves a Read of keys behind, which ends with the program.
func attach(ctx context.Context, s sandbox.Session, command string, keys io.Reader,
	screen io.Writer) (status int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(typing(ctx, s, keys)) }()

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

// typing passes keys on until there are no more. It does not wait for what they cause: the call
// with the Tee does.
func typing(ctx context.Context, s sandbox.Session, keys io.Reader) error {
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
			time.Sleep(time.Millisecond) // a person who types ahead: Execute is about to begin
		}
	}
}
