package tools

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// Jobs returns the tools of a box's jobs, commands that run beside its shell: job_start, job_logs,
// job_wait, job_kill and job_list.
//
// A job starts in the main session's directory, as the last command of its Shell has left it, if
// New combines the two; else in the box's. job_start waits 0.3 s, to tell of a command that ends at
// once.
func Jobs(box sandbox.Sandbox, opts ...Option) *Set {
	if isNil(box) {
		return broken("Jobs: the box is nil")
	}
	j := &jobs{box: box, options: newOptions(opts), shell: newShell(box, opts),
		seen: map[string]int64{}}
	return &Set{shells: []sharedShell{{shell: j.shell}}, tools: []Tool{
		must(newTool("job_start", jobStartText, j.start)),
		must(newTool("job_logs", jobLogsText, j.logs, atLeast(0, "offset"))),
		must(newTool("job_wait", jobWaitText, j.wait, orderly)),
		must(newTool("job_kill", jobKillText, j.kill)),
		readOnly(must(newTool("job_list", jobListText, j.list))),
	}}
}

const (
	jobStartText = `Starts a command in the background, such as a server, and returns its id; if it ends at once, what it has printed. It has a terminal of its own and starts in the shell's directory.`
	jobLogsText  = `Shows what a job has printed since the last call about it; or, with an offset in bytes, from there on.`
	jobWaitText  = `Waits for a job's end, and shows what it has printed since the last call about it.`
	jobKillText  = `Kills a job and all that it has started. Its logs stay.`
	jobListText  = `Lists the jobs, and how each has ended.`
)

type jobs struct {
	box     sandbox.Sandbox
	options options
	shell   *shell // the main session's

	mu   sync.Mutex
	seen map[string]int64 // by job: where in its log the last call has ended
}

type jobStartArgs struct {
	Command string `json:"command" jsonschema:"the command, as for a shell"`
	Dir     string `json:"dir,omitempty" jsonschema:"the directory to start in. Default: the shell's"`
}

func (j *jobs) start(ctx context.Context, a jobStartArgs) (*Reply, error) {
	var opts []sandbox.SessionOption
	if dir := j.dir(a.Dir); dir != "" {
		opts = append(opts, sandbox.Dir(dir))
	}
	job, err := j.box.Background(ctx, a.Command, opts...)
	if err != nil {
		return nil, err
	}
	early := time.NewTimer(j.options.early)
	defer early.Stop()
	select {
	case <-job.Done():
		text, err := j.news(ctx, job)
		return &Reply{Text: text}, err
	case <-early.C:
	case <-ctx.Done(): // the job is there all the same
	}
	return &Reply{Text: fmt.Sprintf("[%s started]\n", job.ID())}, nil
}

// dir returns where a job starts: a relative directory and none begin at the shell's, if its tools
// have told where it is, else at the box's. The box says what is wrong with "~".
func (j *jobs) dir(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	if shell := j.shell.state.Load().dir.Load(); shell != nil && !path.IsAbs(dir) && first != "~" {
		return path.Join(*shell, dir)
	}
	return dir
}

// job finds a job by the id that a model gives.
func (j *jobs) job(id string) (sandbox.Job, error) {
	if job, ok := j.box.Job(id); ok {
		return job, nil
	}
	var ids []string
	for _, job := range j.box.Jobs() {
		ids = append(ids, job.ID())
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no job %q, nor any other", id)
	}
	return nil, fmt.Errorf("there is no job %q; there are %s", id, strings.Join(ids, ", "))
}

type jobLogsArgs struct {
	Job    string `json:"job" jsonschema:"the job's id"`
	Offset *int64 `json:"offset,omitempty" jsonschema:"the first byte to show. Default: what is new"`
}

func (j *jobs) logs(ctx context.Context, a jobLogsArgs) (*Reply, error) {
	job, err := j.job(a.Job)
	if err != nil {
		return nil, err
	}
	if a.Offset == nil {
		text, err := j.news(ctx, job)
		return &Reply{Text: text}, err
	}
	data, next, err := job.Logs(ctx, *a.Offset)
	if err != nil {
		return nil, err
	}
	from := next - int64(len(data))
	shown := head(string(data), j.options.budget-noteRoom)
	next = from + int64(len(shown))
	text := terminal.Text([]byte(shown))
	if from > *a.Offset {
		text = fmt.Sprintf("[bytes %d to %d are no longer kept]\n", *a.Offset, from) + text
	}
	return &Reply{Text: ended(text) + state(job, fmt.Sprintf("read on with offset %d", next))}, nil
}

// news returns what a job has printed since the last call, and how it is. Of what is too long for a
// reply the end is shown.
func (j *jobs) news(ctx context.Context, job sandbox.Job) (string, error) {
	how := state(job, "") // before the log is read: of a job that has ended, all is shown
	j.mu.Lock()
	begin := j.seen[job.ID()]
	j.mu.Unlock()
	room := j.options.budget - noteRoom
	var data []byte
	at := begin
	for {
		more, next, err := job.Logs(ctx, at)
		if err != nil {
			return "", err
		}
		if data = append(data, more...); len(data) > room {
			data = data[len(data)-room:]
		}
		if next == at {
			break
		}
		at = next
	}
	shown := string(data)
	if at-begin > int64(len(data)) {
		shown = tail(shown, room-1) // from the begin of a line
	}
	note := ""
	if from := at - int64(len(shown)); from > begin {
		note = fmt.Sprintf("[bytes %d to %d are left out: offset %d shows them]\n", begin, from,
			begin)
	}
	j.mu.Lock()
	j.seen[job.ID()] = max(j.seen[job.ID()], at)
	j.mu.Unlock()
	return note + ended(terminal.Text([]byte(shown))) + how, nil
}

type jobWaitArgs struct {
	Job     string  `json:"job" jsonschema:"the job's id"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"wait at most so many seconds. Default: a minute"`
}

func (j *jobs) wait(ctx context.Context, a jobWaitArgs) (*Reply, error) {
	job, err := j.job(a.Job)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(j.options.limit(a.Seconds))
	defer late.Stop()
	select {
	case <-job.Done():
	case <-late.C:
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	text, err := j.news(ctx, job)
	return &Reply{Text: text}, err
}

type jobArgs struct {
	Job string `json:"job" jsonschema:"the job's id"`
}

func (j *jobs) kill(ctx context.Context, a jobArgs) (*Reply, error) {
	job, err := j.job(a.Job)
	if err != nil {
		return nil, err
	}
	if err := job.Kill(ctx); err != nil {
		return nil, err
	}
	return &Reply{Text: state(job, "")}, nil
}

func (j *jobs) list(context.Context, noArgs) (*Reply, error) {
	var b strings.Builder
	for _, job := range j.box.Jobs() {
		b.WriteString(shortened(strings.ReplaceAll(job.Command(), "\n", "; ")) + " " +
			state(job, ""))
	}
	if b.Len() == 0 {
		return &Reply{Text: "[no jobs]\n"}, nil
	}
	return &Reply{Text: cut(j.options.budget, b.String())}, nil
}

// state says in brackets how a job is, and more if there is more to say.
func state(job sandbox.Job, more string) string {
	how := "is running"
	select {
	case <-job.Done():
		r, err := job.Wait(context.Background()) // it has ended: this does not wait
		switch {
		case r != nil: // also beside an error: of a writer of LogTo
			how = fmt.Sprintf("has ended with exit status %d", r.ExitCode)
		case errors.Is(err, sandbox.ErrClosed):
			how = "has ended"
		default:
			how = "is gone: " + err.Error()
		}
	default:
	}
	if more != "" {
		how += "; " + more
	}
	return "[" + job.ID() + " " + how + "]\n"
}

// ended ends an unfinished line.
func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
