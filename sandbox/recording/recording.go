// Package recording keeps what goes on in a sandbox as asciicasts, which asciinema plays.
//
// [New] records a sandbox in one asciicast, [Each] makes one for each session and job. Both return
// a Sandbox that takes the place of the one that is recorded.
//
// # What is recorded
//
// A command is recorded as a marker, and as a line that begins with "$ ". Its end is a marker with
// the exit status. Output is what [sandbox.Follow] gets, but a "\n" is "\r\n" except on the
// alternate screen, and U+FFFD stands for bytes that are not UTF-8. Programs of Run, copies, files
// and connections are not recorded.
//
// Text that is typed is an event of input. The event holds the text if it answers a question for a
// Line, up to the end of that line, or if it is a single control character, such as ^C. Any other
// text may be a secret, so its event is empty: what answers a Secret, what is typed to a program
// that takes Keys or before a question, and what follows the first line. Secrets in the text of a
// command, or printed by it, are in the recording.
//
// The terminal has DefaultRows and DefaultCols at first. A Resize, and a session of another Size,
// are events.
//
// # The writer
//
// The writer gets whole lines of the asciicast, from one goroutine. A Write has what came within 10
// ms, or 256 KiB of it. Successive output of one session in a Write is one event. Close writes the
// rest. If 4 MiB wait for a slow writer, the commands slow down. An error or a panic of the writer,
// or a Write that takes 10 s, ends the recording and nothing else: Err and Close return it.
package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

// A Box is a Sandbox that is recorded. Close it instead of the sandbox that New or Each got. Close
// ends the recording too, and returns the errors of both. [sandbox.As] finds what the box is beyond
// a Sandbox; what is called on that is not recorded. All methods may be called from several
// goroutines.
type Box struct {
	sandbox.Sandbox // the observed one
	recorder        *recorder
}

// New returns box as a Sandbox that is recorded to w as one asciicast v2: the main session, and all
// sessions and jobs that the Box begins. It panics if box or w is nil.
//
// An asciicast has one terminal. Where sessions take turns, a line names the one that follows. For
// full-screen programs that run side by side, use Each.
func New(box sandbox.Sandbox, w io.Writer) *Box {
	switch {
	case box == nil:
		panic("recording: New: the box is nil")
	case w == nil:
		panic("recording: New: the writer is nil")
	}
	return record(box, &recorder{
		all: newCast(w, nil, box.String(), sandbox.DefaultRows, sandbox.DefaultCols)})
}

// Each returns box as a Sandbox that is recorded to one asciicast for each session and job. create
// is called once for each of them, with its id ("main", "session-1", "job-1"), and may be called
// from several goroutines. If create returns an error, that session or job is not recorded, and Err
// and Close return the error. The writer is closed when its session is closed, when its job has
// ended, or by Close. The writer's Close may take 10 s. Each panics if box or create is nil.
func Each(box sandbox.Sandbox, create func(id string) (io.WriteCloser, error)) *Box {
	switch {
	case box == nil:
		panic("recording: Each: the box is nil")
	case create == nil:
		panic("recording: Each: create is nil")
	}
	return record(box, &recorder{create: create})
}

func record(box sandbox.Sandbox, r *recorder) *Box {
	r.name = box.String()
	return &Box{sandbox.Observe(box, r), r}
}

// Unwrap returns the sandbox whose calls are recorded.
func (b *Box) Unwrap() sandbox.Sandbox { return b.Sandbox }

// Err returns why the recording, or one of its asciicasts, has ended early; nil if none has.
// Several reasons are joined as by errors.Join.
func (b *Box) Err() error { return b.recorder.failure() }

// A recorder is the Observer of a Box.
type recorder struct {
	name   string
	all    *cast // nil: one for each
	create func(id string) (io.WriteCloser, error)

	mu     sync.Mutex
	closed bool
	casts  []*cast
	err    error // of create
}

var _ sandbox.Observer = (*recorder)(nil)

// track returns the track of a new session or job of that id.
func (r *recorder) track(id string, o sandbox.SessionOptions) *track {
	t := &track{id: id, cast: r.all, shared: r.all != nil, rows: o.Rows, cols: o.Cols}
	if r.all != nil {
		return t
	}
	w, err := r.create(id)
	if err == nil && w == nil {
		err = fmt.Errorf("recording: create(%q) has returned no writer", id)
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = errors.Join(r.err, err)
		return t // without a cast
	}
	t.cast = newCast(w, w, r.name+" "+id, o.Rows, o.Cols)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.casts = append(r.casts, t.cast)
	if r.closed { // while the session was being opened
		t.cast.close()
	}
	return t
}

func (r *recorder) failure() error {
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

// Open implements sandbox.Observer.
func (r *recorder) Open(id string, o sandbox.SessionOptions) sandbox.SessionObserver {
	return &session{r.track(id, o)}
}

// Background implements sandbox.Observer.
func (r *recorder) Background(ctx context.Context, command string,
	o sandbox.SessionOptions) (context.Context, sandbox.JobObserver) {
	return ctx, newJob(r, command, o)
}

// Run implements sandbox.Observer.
func (r *recorder) Run(ctx context.Context, _ *sandbox.Cmd) (context.Context, func(int, error)) {
	return ctx, func(int, error) {}
}

// Close implements sandbox.Observer.
func (r *recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	casts := append([]*cast{r.all}, r.casts...)
	r.mu.Unlock()
	for _, c := range casts {
		c.close()
	}
	return r.failure()
}
