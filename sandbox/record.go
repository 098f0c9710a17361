package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Record returns box as a Sandbox that writes what goes on in it to w as an asciicast v2, which
// asciinema plays: the commands, what they print, what is typed, and how they end, of the main
// session and of all sessions and jobs that are begun by the Recording.
//
// An asciicast has one terminal. Where the sessions take turns, a line names the one that follows;
// RecordEach gives each a file of its own, which is the way for full-screen programs that run side
// by side.
//
// In the recording, a command is a marker and a line behind "$ ", its end a marker with the exit
// status. Output is what Follow gets; a "\n" is "\r\n" there, except on the alternate screen, and
// U+FFFD stands for bytes that are not UTF-8. Text that is typed is an event of input if it answers
// a question for a Line. Else it may be a secret, and the event is empty: what is typed to a
// Secret, to a program that takes Keys, before anybody has asked, and behind the first line.
// (Single control characters, such as ^C, are shown.) Secrets in the text of a command, or printed
// by it, are in the recording. Runs, copies and connections are not.
//
// The terminal has DefaultRows and DefaultCols until a Resize; that, and a session of another Size,
// is an event.
//
// w gets whole lines, from one goroutine: what comes within 10 ms or 256 KiB in one Write, and
// output in it as one event until another session prints or something else happens. Close writes
// the rest. A slow w slows the commands once 4 MiB wait for it. An error or a panic of w, or a
// Write that takes 10 s, ends the recording and nothing else: Err and Close return it.
func Record(box Sandbox, w io.Writer) *Recording {
	switch {
	case box == nil:
		panic("sandbox: Record: the box is nil")
	case w == nil:
		panic("sandbox: Record: the writer is nil")
	}
	r := newRecording(box)
	r.all = newCast(w, nil, box.String(), DefaultRows, DefaultCols)
	r.main = &recordedSession{Session: box, track: r.track(box.ID(), NewSessionOptions())}
	return r
}

// RecordEach is Record with an asciicast for each session and job. create is called once for each,
// with its id ("main", "session-1", "job-1"), and may be called from several goroutines; its error
// is the recording's. The writer is closed when the session is closed, or the job has ended, or by
// Close; its Close may take 10 s, too.
func RecordEach(box Sandbox, create func(id string) (io.WriteCloser, error)) *Recording {
	switch {
	case box == nil:
		panic("sandbox: RecordEach: the box is nil")
	case create == nil:
		panic("sandbox: RecordEach: create is nil")
	}
	r := newRecording(box)
	r.create = create
	r.main = &recordedSession{Session: box, track: r.track(box.ID(), NewSessionOptions())}
	return r
}

// A Recording is a Sandbox that is recorded: see Record. What it is beyond a Sandbox, such as a
// container's name, is to be had from the box, by Unwrap or As; what is called there is not
// recorded. Close it instead of the box.
type Recording struct {
	Sandbox // what is not recorded

	main   *recordedSession
	all    *cast // nil: one for each
	create func(id string) (io.WriteCloser, error)
	jobs   sync.WaitGroup // one for each job that runs

	mu     sync.Mutex
	closed bool
	casts  []*cast
	known  map[string]*recordedJob
	err    error // of create
}

var _ Sandbox = (*Recording)(nil)

func newRecording(box Sandbox) *Recording {
	return &Recording{Sandbox: box, known: map[string]*recordedJob{}}
}

// track returns the place for a session or job of that id.
func (r *Recording) track(id string, o SessionOptions) *track {
	t := &track{id: id, cast: r.all, shared: r.all != nil, rows: o.Rows, cols: o.Cols}
	if r.all != nil {
		return t
	}
	w, err := r.create(id)
	if err == nil && w == nil {
		err = fmt.Errorf("create(%q) has returned no writer", id)
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = errors.Join(r.err, err)
		return t // without a cast
	}
	t.cast = newCast(w, w, r.Sandbox.String()+" "+id, o.Rows, o.Cols)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.casts = append(r.casts, t.cast)
	if r.closed { // while the session was being opened
		t.cast.close()
	}
	return t
}

// Unwrap returns the box that is recorded.
func (r *Recording) Unwrap() Sandbox { return r.Sandbox }

// Err returns why the recording, or one of them, has ended early; nil if all is well. It is
// errors.Join's where there are several reasons.
func (r *Recording) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := []error{r.err}
	for _, c := range r.casts {
		errs = append(errs, c.failure())
	}
	if r.all != nil {
		errs = append(errs, r.all.failure())
	}
	return errors.Join(errs...)
}

// Close closes the box and ends the recording. It returns the errors of both.
func (r *Recording) Close() error {
	err := r.Sandbox.Close()
	r.jobs.Wait() // they have ended with the box
	r.mu.Lock()
	r.closed = true
	casts := append([]*cast{r.all}, r.casts...)
	r.mu.Unlock()
	for _, c := range casts {
		c.close()
	}
	return errors.Join(err, r.Err())
}

// Open implements Sandbox.
func (r *Recording) Open(ctx context.Context, opts ...SessionOption) (Session, error) {
	s, err := r.Sandbox.Open(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return &recordedSession{Session: s, track: r.track(s.ID(), NewSessionOptions(opts...))}, nil
}

// Execute implements Session.
func (r *Recording) Execute(ctx context.Context, command string,
	opts ...ExecOption) (*Result, error) {
	return r.main.Execute(ctx, command, opts...)
}

// Input implements Session.
func (r *Recording) Input(ctx context.Context, text string, opts ...ExecOption) (*Result, error) {
	return r.main.Input(ctx, text, opts...)
}

// Type implements Session.
func (r *Recording) Type(ctx context.Context, text string) error { return r.main.Type(ctx, text) }

// Wait implements Session.
func (r *Recording) Wait(ctx context.Context, opts ...ExecOption) (*Result, error) {
	return r.main.Wait(ctx, opts...)
}

// Interrupt implements Session.
func (r *Recording) Interrupt(ctx context.Context, opts ...ExecOption) (*Result, error) {
	return r.main.Interrupt(ctx, opts...)
}

// Resize implements Session.
func (r *Recording) Resize(ctx context.Context, rows, cols int) error {
	return r.main.Resize(ctx, rows, cols)
}

// As returns the first of box, what box wraps (Unwrap() Sandbox), and so on, that is a T: a
// *sshbox.DockerSSHBox, or an interface that only some boxes have.
func As[T any](box Sandbox) (t T, ok bool) {
	for box != nil {
		if t, ok = box.(T); ok {
			return t, true
		}
		wrapper, wraps := box.(interface{ Unwrap() Sandbox })
		if !wraps {
			break
		}
		box = wrapper.Unwrap()
	}
	return t, false
}
