package recording

import (
	"fmt"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A job records what goes on in a job. Output waits until the job's id is known.
type job struct {
	recorder *recorder
	command  string
	options  sandbox.SessionOptions
	began    time.Time

	track   *track        // nil: the job has not been started
	started chan struct{} // closed when track is set, or the job could not be started
}

func newJob(r *recorder, command string, o sandbox.SessionOptions) *job {
	return &job{recorder: r, command: command, options: o, began: time.Now(),
		started: make(chan struct{})}
}

// Started implements sandbox.JobObserver.
func (j *job) Started(id string) {
	defer close(j.started)
	j.track = j.recorder.track(id, j.options)
	j.track.begin(j.command)
}

// Write implements sandbox.JobObserver.
func (j *job) Write(p []byte) (int, error) {
	<-j.started
	if j.track == nil {
		return len(p), nil
	}
	return j.track.Write(p)
}

// Input implements sandbox.JobObserver.
func (j *job) Input(text string, awaits sandbox.InputKind) {
	j.track.input(withoutSecrets(text, awaits))
}

// Resize is called after the job's terminal has got another size.
func (j *job) Resize(rows, cols int) { j.track.resize(rows, cols) }

// Result implements sandbox.JobObserver.
func (j *job) Result(*sandbox.Result) {}

// End implements sandbox.JobObserver.
func (j *job) End(res *sandbox.Result, err error) {
	switch {
	case j.track == nil: // it has not been started
		close(j.started)
		return
	case res == nil:
		j.track.end(fmt.Sprintf("ended after %.3f s: %v", time.Since(j.began).Seconds(), err))
	default: // also beside an error, of a writer of LogTo
		j.track.end(exitStatus(res, j.began))
	}
	j.track.close()
}
