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

// Jobs returns the tools of a box's jobs, which are commands that run beside its shell: job_start,
// job_logs, job_wait, job_kill and job_list.
//
// If New combines Jobs with the Shell of the box, a job starts in the directory in which the
// shell's last command has left it. Else it starts in the box's directory. job_start waits 0.3 s,
// so that it can report a command that ends at once.
func Jobs(box sandbox.Sandbox, c Config) *Set {
	c, err := c.check("Jobs: the box", box)
	if err != nil {
		return broken(err)
	}
	j := &jobs{box: box, config: c, shell: newShell(box, c), seen: map[string]int64{}}
	return &Set{shells: []sharedShell{{shell: j.shell}}, tools: []Tool{
		must(newTool("job_start", jobStartText, j.start)),
		must(newTool("job_logs", jobLogsText, j.logs, atLeast(0, "offset"))),
		must(newTool("job_wait", jobWaitText, j.wait, boundSeconds)),
		must(newTool("job_kill", jobKillText, j.kill)),
		readOnly(must(newTool("job_list", jobListText, j.list))),
	}}
}

const (
	jobStartText = "Starts a command in the background, such as a server, and returns the " +
		"job's id. If the command ends at once, shows what it printed. The job has a terminal " +
		"of its own and starts in the shell's directory."
	jobLogsText = "Shows what a job has printed since the last call about it or, with an " +
		"offset in bytes, from there on."
	jobWaitText = "Waits until a job ends, and shows what it has printed since the last call " +
		"about it."
	jobKillText = "Kills a job and all processes that it has started. Its logs stay."
	jobListText = "Lists the jobs, and says of each whether it runs or how it has ended."
)

type jobs struct {
	box    sandbox.Sandbox
	config Config
	shell  *shell // the main session's

	mu   sync.Mutex
	seen map[string]int64 // by a job's id: the offset in its log up to which the model has seen it
}

type jobStartArgs struct {
	Command string `json:"command" jsonschema:"the command, as for a shell"`

	Dir string `json:"dir,omitempty" jsonschema:"where to start. Default: the shell's directory"`
}

func (j *jobs) start(ctx context.Context, a jobStartArgs) (*Reply, error) {
	var opts []sandbox.SessionOption
	if dir := j.startDir(a.Dir); dir != "" {
		opts = append(opts, sandbox.Dir(dir))
	}
	job, err := j.box.Background(ctx, a.Command, opts...)
	if err != nil {
		return nil, err
	}
	early := time.NewTimer(j.config.early)
	defer early.Stop()
	select {
	case <-job.Done():
		text, err := j.newOutput(ctx, job)
		return &Reply{Text: text}, err
	case <-early.C:
	case <-ctx.Done(): // the job has started, so its id is the reply
	}
	return &Reply{Text: fmt.Sprintf("[%s started]\n", job.ID())}, nil
}

// startDir returns where a job starts. dir, if it is relative or empty, starts at the shell's
// directory, as far as the shell's tools have reported it, else at the box's. A "~" goes to the
// box, whose error says what is wrong with it.
func (j *jobs) startDir(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	if shell := j.shell.state.Load().dir.Load(); shell != nil && !path.IsAbs(dir) && first != "~" {
		return path.Join(*shell, dir)
	}
	return dir
}

// job returns the job with the id that a model gives. The error lists the jobs.
func (j *jobs) job(id string) (sandbox.Job, error) {
	if job, ok := j.box.Job(id); ok {
		return job, nil
	}
	var ids []string
	for _, job := range j.box.Jobs() {
		ids = append(ids, job.ID())
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no job %q: no job has been started", id)
	}
	return nil, fmt.Errorf("there is no job %q; there are %s", id, strings.Join(ids, ", "))
}

type jobLogsArgs struct {
	Job string `json:"job" jsonschema:"the job's id"`

	Offset *int64 `json:"offset,omitempty" jsonschema:"the first byte. Default: the first new one"`
}

func (j *jobs) logs(ctx context.Context, a jobLogsArgs) (*Reply, error) {
	job, err := j.job(a.Job)
	if err != nil {
		return nil, err
	}
	if a.Offset == nil {
		text, err := j.newOutput(ctx, job)
		return &Reply{Text: text}, err
	}
	data, next, err := job.Logs(ctx, *a.Offset)
	if err != nil {
		return nil, err
	}
	from := next - int64(len(data))
	shown := head(string(data), j.config.MaxReply-noteRoom)
	next = from + int64(len(shown))
	text := terminal.Text([]byte(shown))
	if from > *a.Offset {
		text = fmt.Sprintf("[bytes %d to %d are no longer kept]\n", *a.Offset, from) + text
	}
	return &Reply{Text: endLine(text) + stateNote(job,
		fmt.Sprintf("read on with offset %d", next))}, nil
}

// newOutput returns what a job has printed since the last call about it, and the job's state. If
// that is too long for a reply, it returns the end.
func (j *jobs) newOutput(ctx context.Context, job sandbox.Job) (string, error) {
	// Before the log is read, so that the log of a job that has ended is read to its end.
	state := stateNote(job, "")
	j.mu.Lock()
	begin := j.seen[job.ID()]
	j.mu.Unlock()
	room := j.config.MaxReply - noteRoom
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
		shown = tail(shown, room-1) // shorter than shown, so that it begins with a line
	}
	note := ""
	if from := at - int64(len(shown)); from > begin {
		note = fmt.Sprintf("[bytes %d to %d are left out: use offset %d to see them]\n", begin,
			from,
			begin)
	}
	j.mu.Lock()
	j.seen[job.ID()] = max(j.seen[job.ID()], at)
	j.mu.Unlock()
	return note + endLine(terminal.Text([]byte(shown))) + state, nil
}

type jobWaitArgs struct {
	Job     string  `json:"job" jsonschema:"the job's id"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"how long to wait. Default: a minute"`
}

func (j *jobs) wait(ctx context.Context, a jobWaitArgs) (*Reply, error) {
	job, err := j.job(a.Job)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(j.config.waitFor(a.Seconds))
	defer late.Stop()
	select {
	case <-job.Done():
	case <-late.C:
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	text, err := j.newOutput(ctx, job)
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
	return &Reply{Text: stateNote(job, "")}, nil
}

func (j *jobs) list(context.Context, noArgs) (*Reply, error) {
	var b strings.Builder
	for _, job := range j.box.Jobs() {
		b.WriteString(abbreviate(strings.ReplaceAll(job.Command(), "\n", "; ")) + " " +
			stateNote(job, ""))
	}
	if b.Len() == 0 {
		return &Reply{Text: "[no jobs]\n"}, nil
	}
	return &Reply{Text: shorten(j.config.MaxReply, b.String())}, nil
}

// stateNote says in brackets whether a job runs or how it has ended, and more if that is not "".
func stateNote(job sandbox.Job, more string) string {
	how := "is running"
	select {
	case <-job.Done():
		r, err := job.Wait(context.Background()) // the job has ended, so this does not block
		switch {
		case r != nil: // there can be an error of a writer of LogTo beside it
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

// endLine adds a newline to a text that does not end in one.
func endLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
