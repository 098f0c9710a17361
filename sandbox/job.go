package sandbox

import (
	"context"
	"fmt"
	"syscall"
)

// A Job is a command in a background session.
type Job interface {
	// ID returns the job's name, which is unique in its sandbox.
	ID() string

	// Command returns the command as it was given.
	Command() string

	// Logs returns what the job has printed, as its terminal got it, from offset on, and next, the
	// offset to read on from. Offsets count the bytes of the whole output. Logs does not wait: if
	// there is nothing new yet, there is no data and next is offset. One call returns at most 1
	// MiB. If offset is negative or beyond the end, the error is an *OffsetError.
	//
	// The last 64 MiB, or what MaxLog says, are kept until Forget or the sandbox's Close (on disk,
	// if they are long). If what was at offset is no longer kept, the data begins with the first
	// byte that is, whose offset is next-len(data). Any number of readers may read from any offset,
	// during the job and after it.
	Logs(ctx context.Context, offset int64) (data []byte, next int64, err error)

	// Stderr is Logs for the standard error of a job that was started with Pipes. For a job on a
	// terminal, whose outputs are one, the error is errors.ErrUnsupported.
	Stderr(ctx context.Context, offset int64) (data []byte, next int64, err error)

	// Status says how far the job has got: State is Running, Waiting (with Awaits and MayGoOn) or
	// Exited. Output is empty: Logs has what the job has printed. Status does not wait for the job.
	// It takes three looks at the job's processes, about 15 ms in all. A job that may go on by
	// itself is Waiting once it has printed nothing for the time that Patience has by default.
	Status(ctx context.Context) (*Result, error)

	// Until waits for the job under the conditions of Session.Wait, for example until the output
	// matches Until's expression, or until the job waits for input. Input then answers it. Output
	// is what the job has printed since the last Result of Until, the first time since its start,
	// as far as the log is kept. Wait, Logs and Status change nothing about that. Calls at once
	// each get all of that output.
	//
	// The end of ctx ends only the waiting: Until then returns ctx's error and a Result in State
	// Running. Timeout kills the job. After the job's end, the Result is that of Wait, with the
	// rest of the output.
	Until(ctx context.Context, opts ...ExecOption) (*Result, error)

	// Input types text to the job's terminal. After the job's end it returns ErrIdle.
	//
	// For a job with Pipes, Input writes text to its standard input. Input then returns when the
	// sandbox has the text, which takes some 300 KiB in all from a program that does not read. If
	// ctx ends before, the text goes its way all the same. What comes after the program has closed
	// its input is dropped. After EndInput the error is io.ErrClosedPipe.
	Input(ctx context.Context, text string) error

	// EndInput ends the standard input of a job with Pipes, after what Input has written: the
	// program reads it, and then the end. Before, it finds no end, also if the connection to the
	// sandbox is cut. Ending it again does nothing. After the job's end, EndInput returns ErrIdle.
	// For a job on a terminal, the error is errors.ErrUnsupported: Input types "\x04" there.
	EndInput(ctx context.Context) error

	// Signal sends sig to the job's foreground process group. A shell of the job that waits for a
	// program, and has no trap for sig, gets it only if it goes on when the program has ended: a
	// program that ends in an orderly way gives the job its status. (A shell that goes on more than
	// 10 s later gets nothing.) After the job's end Signal returns os.ErrProcessDone. A job that is
	// stopped (SIGSTOP, SIGTSTP) has ended, with 128 and the signal's number as its status: nothing
	// could make it go on.
	//
	// With Pipes, sig goes to the process group of the job, with its shell. What has a group of
	// its own (setsid) does not get it. A job that is stopped has not ended: SIGCONT makes it go
	// on.
	Signal(ctx context.Context, sig syscall.Signal) error

	// Resize changes the size of the job's terminal; programs on it get SIGWINCH. After the job's
	// end it returns os.ErrProcessDone. With Pipes, the error is errors.ErrUnsupported.
	Resize(ctx context.Context, rows, cols int) error

	// Kill kills the command and all its descendants, with SIGHUP and SIGTERM first and SIGKILL a
	// second later, and returns when they are gone. Killing an ended job does nothing.
	Kill(ctx context.Context) error

	// Wait waits for the job's end. The Result's Output is the log as a person would read it, head
	// and tail. If a writer of LogTo has panicked or was given up, there is an error beside the
	// Result.
	Wait(ctx context.Context) (*Result, error)

	// Done is closed when the job has ended.
	Done() <-chan struct{}

	// Forget drops an ended job with its log: Job and Jobs no longer return it, and Logs, Status,
	// Until and Wait return ErrClosed. While the job runs, Forget returns ErrBusy.
	Forget() error
}

// An OffsetError says that the log of a job has no such offset.
type OffsetError struct {
	Offset int64
	Size   int64 // the greatest offset that there is
}

// Error implements error.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("offset %d is outside of the %d bytes there are", e.Offset, e.Size)
}
