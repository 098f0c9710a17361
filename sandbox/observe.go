package sandbox

import (
	"context"
	"errors"
	"io"
	"sync"
)

// An Observer is notified of what goes on in a sandbox: see [Observe]. Its methods, and those of
// what they return, are the events: there are no others. Packages recording, tracing and logging
// are Observers.
//
// The methods may be called from several goroutines. They must not block, because the observed
// calls wait for them. No result may be nil, except for the error of Close.
type Observer interface {
	// Open is called once for each session: for the main one by Observe, for others when they have
	// been opened. If another program has opened the session, Open is called when Session or
	// Sessions first returns it, with the default options.
	Open(id string, o SessionOptions) SessionObserver

	// Background is called before a job begins. The job gets the context that it returns.
	Background(ctx context.Context, command string, o SessionOptions) (context.Context, JobObserver)

	// Run is called before a program begins. The program gets the context that Run returns, and
	// ended is called with what the sandbox's Run has returned.
	Run(ctx context.Context, cmd *Cmd) (_ context.Context, ended func(exitCode int, err error))

	// Close is called by each Close of the sandbox, after the sandbox has been closed and the end
	// of all commands and jobs has been reported. Its error is joined to the sandbox's.
	Close() error
}

// A SessionObserver is notified of what goes on in a session.
type SessionObserver interface {
	// Execute is called before a command begins. The command gets the context that Execute returns.
	Execute(ctx context.Context, command string) (context.Context, CommandObserver)

	// Input is called before text is typed to an unfinished command; Interrupt types "\x03". awaits
	// is what the command waits for, as far as its last Result tells. It is 0 if the command is not
	// known to wait, and after a line has been typed: the next one may answer another question.
	Input(text string, awaits InputKind)

	// Resize is called after the terminal has got another size.
	Resize(rows, cols int)

	// Close is called after the session has been closed. It is not called for a session that ends
	// with its sandbox.
	Close()
}

// A CommandObserver is notified of what becomes of a command. As a Writer it gets the command's
// output, as [Follow] does.
type CommandObserver interface {
	io.Writer

	// Result is called when a call has returned a Result of the unfinished command.
	Result(res *Result)

	// End is called once. res and err are what the call that reports the end has returned. If res
	// is nil and err is not, the command has not been executed, or its session is closed or lost.
	// If both are nil, the command has ended, and no call has reported how.
	End(res *Result, err error)
}

// A JobObserver is notified of what becomes of a job. As a Writer it gets the job's output, as
// [LogTo] does, perhaps before the job's id is known. If it has a method Resize(rows, cols int),
// that is called after the job's terminal has got another size.
type JobObserver interface {
	io.Writer

	// Started is called when the job has been started.
	Started(id string)

	// Input is called before text is typed to the job. awaits is as with SessionObserver, by the
	// last Result of Status or Until.
	Input(text string, awaits InputKind)

	// Result is called when Until has returned a Result of the unfinished job.
	Result(res *Result)

	// End is called once: with what the job's Wait has returned, or, if the job has not been
	// started, with the error of Background alone.
	End(res *Result, err error)
}

// Observe returns box as a Sandbox that notifies o of its sessions, commands, jobs and programs.
// Copies, files and connections are not observed, nor are calls of box itself: use the result in
// the place of box, and close it instead of box. [As] finds what box is beyond a Sandbox. Observe
// panics if box or o is nil.
func Observe(box Sandbox, o Observer) Sandbox {
	switch {
	case box == nil:
		panic("sandbox: Observe: the box is nil")
	case o == nil:
		panic("sandbox: Observe: the observer is nil")
	}
	b := &observed{Sandbox: box, observer: o, unfinished: map[*observedCommand]bool{},
		sessions: map[string]*observedSession{}, jobs: map[string]*observedJob{}}
	b.main = b.observe(box, NewSessionOptions())
	return b
}

// An observed is a Sandbox that tells its Observer.
type observed struct {
	Sandbox  // for what is not observed
	observer Observer
	main     *observedSession
	running  sync.WaitGroup // counts the jobs whose end has not been reported
	opening  sync.Mutex     // held during the Observer's Open

	mu         sync.Mutex // also guards the sessions' fields
	unfinished map[*observedCommand]bool
	sessions   map[string]*observedSession // by their ids
	jobs       map[string]*observedJob     // by their ids
}

// Unwrap returns the sandbox that is observed.
func (b *observed) Unwrap() Sandbox { return b.Sandbox }

// Close implements Session.
func (b *observed) Close() error {
	err := b.Sandbox.Close()
	b.running.Wait() // the jobs have ended with the sandbox
	b.mu.Lock()
	var unfinished []*observedCommand
	for c := range b.unfinished {
		unfinished = append(unfinished, c)
	}
	b.mu.Unlock()
	for _, c := range unfinished {
		c.end(nil, ErrClosed)
	}
	return errors.Join(err, b.observer.Close())
}

// Run implements Sandbox.
func (b *observed) Run(ctx context.Context, cmd *Cmd) (int, error) {
	if ctx == nil || cmd == nil {
		return b.Sandbox.Run(ctx, cmd) // which says so
	}
	ctx, ended := b.observer.Run(ctx, cmd)
	code, err := b.Sandbox.Run(ctx, cmd)
	ended(code, err)
	return code, err
}

// Open implements Sandbox.
func (b *observed) Open(ctx context.Context, opts ...SessionOption) (Session, error) {
	s, err := b.Sandbox.Open(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return b.observe(s, NewSessionOptions(opts...)), nil
}

// Execute implements Session.
func (b *observed) Execute(ctx context.Context, command string,
	opts ...ExecOption) (*Result, error) {
	return b.main.Execute(ctx, command, opts...)
}

// Input implements Session.
func (b *observed) Input(ctx context.Context, text string, opts ...ExecOption) (*Result, error) {
	return b.main.Input(ctx, text, opts...)
}

// Type implements Session.
func (b *observed) Type(ctx context.Context, text string) error { return b.main.Type(ctx, text) }

// Wait implements Session.
func (b *observed) Wait(ctx context.Context, opts ...ExecOption) (*Result, error) {
	return b.main.Wait(ctx, opts...)
}

// Interrupt implements Session.
func (b *observed) Interrupt(ctx context.Context, opts ...ExecOption) (*Result, error) {
	return b.main.Interrupt(ctx, opts...)
}

// Resize implements Session.
func (b *observed) Resize(ctx context.Context, rows, cols int) error {
	return b.main.Resize(ctx, rows, cols)
}
