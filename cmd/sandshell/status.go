package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sandshell/sandshell/internal/printable"
)

// Exit statuses of sandshell itself, as docker run and env have them.
const (
	statusUsage  = 2
	statusFailed = 125
)

// An exitStatus ends sandshell with the status of a command, without a message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// statusError returns the error with which sandshell ends with the status of a command.
func statusError(status int) error {
	if status == 0 {
		return nil
	}
	return exitStatus(status)
}

// A usageError says what is wrong with the command line.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// A signalError is the cause of a context that a signal has ended.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// errBrokenPipe is the cause of a context whose output has lost its reader.
var errBrokenPipe = &signalError{syscall.SIGPIPE}

// untilSignal returns a context that ends with the first signal that ends programs. The next one
// ends the program at once.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	// A write to a closed pipe is an error, so that boxes are closed nevertheless.
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&signalError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// judge returns the exit status for the error of a command, and a message for the user.
func judge(ctx context.Context, err error) (status int, message string) {
	var wrong *usageError
	var ended exitStatus
	var signal *signalError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &ended):
		return int(ended), ""
	case errors.As(err, &wrong):
		return statusUsage, printable.Text(err.Error())
	case errors.As(err, &signal), errors.As(context.Cause(ctx), &signal):
		return 128 + int(signal.signal), ""
	}
	return statusFailed, printable.Text(err.Error())
}
