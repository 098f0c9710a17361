package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// Jobs returns the tools of a box's jobs. A job is a command that runs in the background, in a
// session of its own.
//
//	job_start(command, dir?)
//	job_logs(job, offset?)
//	job_wait(job, seconds?)
//	job_answer(job, text?, key?)
//	job_kill(job)
//	job_list()
//
// The argument job is the ID of a sandbox.Job: "job-1", "job-2" and so on. job_start returns it.
//
// If New combines Jobs with the Shell of the box, a job starts in the shell's directory. Otherwise
// it starts in the box's directory. job_start waits up to 0.3 s for the job to end or to ask, and
// reports that. So does job_answer. The replies say whether a job waits for input.
//
// job_wait and job_answer call the job's Until, so its Output lacks what they have read.
func Jobs(box sandbox.Sandbox, c Config) *Set {
	c, err := c.check("Jobs: the box", box)
	if err != nil {
		return broken(err)
	}
	j := &jobs{box: box, config: c, shell: newShell(box, c), seen: map[string]int64{},
		told: map[string]bool{}}
	set := &Set{shells: []sharedShell{{shell: j.shell}}, tools: []Tool{
		must(newTool("job_start", jobStartText, j.start)),
		must(newTool("job_logs", jobLogsText, j.logs, atLeast(0, "offset"))),
		must(newTool("job_wait", jobWaitText, j.wait, boundSeconds)),
		must(newTool("job_answer", jobAnswerText, j.answer, oneOf("key", keyNames()),
			describe("key", answerKey))),
		must(newTool("job_kill", jobKillText, j.kill)),
		readOnly(must(newTool("job_list", jobListText, j.list))),
	}}
	return set.withEgress(c)
}

const (
	jobStartText = "Starts a command in the background, such as a server, and returns the " +
		"job's id, such as job-1. If the command ends at once, shows what it has printed. The " +
		"job has a terminal of its own, and starts in the shell's directory."
	jobLogsText = "Shows what a job has printed: since the last call about it or, if you give " +
		"an offset in bytes, from there on."
	jobWaitText = "Waits until a job ends or asks for input, and shows what it has printed " +
		"since the last call about it."
	jobAnswerText = "Types into a job that waits for input: the answer to its question, a " +
		"password, or keys. Then shows what the job prints at once."
	jobKillText = "Kills a job and all processes that it has started. Its logs stay."
	jobListText = "Lists the jobs. For each it shows whether it is running, waits for input, or " +
		"how it has ended."
)

type jobs struct {
	box    sandbox.Sandbox
	config Config
	shell  *shell // the main session's

	mu   sync.Mutex
	seen map[string]int64 // by a job's id: the end of the part of its log that the model has seen
	told map[string]bool  // by a job's id: the model knows that the job may be waiting
}

type jobStartArgs struct {
	Command string `json:"command" jsonschema:"the command, as at the shell's prompt"`

	Dir string `json:"dir,omitempty" jsonschema:"where to start. Default: the shell's directory"`
}

func (j *jobs) start(ctx context.Context, a jobStartArgs) (*Reply, error) {
	var opts []sandbox.SessionOption
	if dir := j.startDir(a.Dir); dir != "" {
		opts = append(opts, sandbox.Dir(dir))
	}
	job, err := j.box.Background(ctx, a.Command, opts...)
	var path *fs.PathError
	if errors.As(err, &path) { // err names a job that the model would look for
		return nil, fmt.Errorf("the job was not started: %w", path)
	}
	if err != nil {
		return nil, err
	}
	started := fmt.Sprintf("[%s started]\n", job.ID())
	r, err := job.Until(ctx, sandbox.Yield(j.config.earlyEnd))
	if err != nil || r.State == sandbox.Running {
		return &Reply{Text: started}, nil // if ctx has ended, too: the job runs all the same
	}
	j.mu.Lock()
	j.told[job.ID()] = r.MayGoOn
	j.mu.Unlock()
	text, err := j.newOutput(ctx, job)
	if r.State == sandbox.Waiting {
		text = started + text
	}
	return &Reply{Text: text}, err
}

// startDir returns the directory in which a job starts. A relative or empty dir starts at the
// shell's directory or, if no tool has reported that, at the box's. A dir that begins with "~"
// stays as it is: the box refuses it, and its error says why.
func (j *jobs) startDir(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	if shell := j.shell.state.Load().dir.Load(); shell != nil && !path.IsAbs(dir) && first != "~" {
		return path.Join(*shell, dir)
	}
	return dir
}

// job returns the job with an id. If there is none, the error lists the jobs.
func (j *jobs) job(ctx context.Context, id string) (sandbox.Job, error) {
	if job, ok := j.box.Job(id); ok {
		return job, nil
	}
	var ids []string
	for _, job := range j.box.Jobs() {
		ids = append(ids, job.ID())
	}
	switch len(ids) {
	case 0:
		return nil, fmt.Errorf("there is no job %q: use %s to start one", id,
			toolName(ctx, "job_start"))
	case 1:
		return nil, fmt.Errorf("there is no job %q: use %s", id, ids[0])
	}
	return nil, fmt.Errorf("there is no job %q: use one of %s", id, strings.Join(ids, ", "))
}

type jobLogsArgs struct {
	Job string `json:"job" jsonschema:"the job's id"`

	Offset *int64 `json:"offset,omitempty" jsonschema:"where to begin. Default: what is new"`
}

func (j *jobs) logs(ctx context.Context, a jobLogsArgs) (*Reply, error) {
	job, err := j.job(ctx, a.Job)
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
	more := fmt.Sprintf("read on with offset %d", next)
	if isEnd(ctx, job, next) {
		more = fmt.Sprintf("this is the end of its log, offset %d", next)
	}
	return &Reply{Text: endLine(text) + stateNote(ctx, job, more)}, nil
}

// isEnd reports whether a job has ended, and its log has nothing from the offset on.
func isEnd(ctx context.Context, job sandbox.Job, offset int64) bool {
	select {
	case <-job.Done():
		data, _, err := job.Logs(ctx, offset)
		return err == nil && len(data) == 0
	default:
		return false
	}
}

// newOutput returns what a job has printed since the last call about it, and the job's state. If
// the output is too long for a reply, newOutput returns its tail.
func (j *jobs) newOutput(ctx context.Context, job sandbox.Job) (string, error) {
	// The state is read before the log. So if the job has ended, the log is complete.
	state := stateNote(ctx, job, "")
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
		shown = tail(shown, room-1) // one byte less, so that tail cuts between lines
	}
	note := ""
	if from := at - int64(len(shown)); from > begin {
		note = fmt.Sprintf("[bytes %d to %d are left out: use offset %d to see them]\n", begin,
			from, begin)
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
	job, err := j.job(ctx, a.Job)
	if err != nil {
		return nil, err
	}
	return j.await(ctx, "", job, j.config.waitFor(a.Seconds), a.Seconds > 0)
}

// await waits for the job, and returns what it has printed since the last call about it. The text
// begins with before. If patient is set, a job that may go on by itself gets all of the time,
// unless it shows a new question.
func (j *jobs) await(ctx context.Context, before string, job sandbox.Job, limit time.Duration,
	patient bool) (*Reply, error) {
	j.mu.Lock()
	told := j.told[job.ID()]
	j.mu.Unlock()
	for began := time.Now(); ; {
		left := max(limit-time.Since(began), 1)
		r, err := job.Until(ctx, sandbox.Yield(left))
		isNew := !told || r != nil && r.Output != ""
		told = err == nil && r.MayGoOn
		if !patient || !told || time.Since(began) >= limit || isNew && showsQuestion(r) {
			break
		}
	}
	j.mu.Lock()
	j.told[job.ID()] = told
	j.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	text, err := j.newOutput(ctx, job) // which says how far the job has got, or how it has ended
	return &Reply{Text: before + text}, err
}

// showsQuestion reports whether a job that waits shows that it does.
func showsQuestion(r *sandbox.Result) bool {
	return r.Awaits != sandbox.Line || r.FullScreen ||
		r.Output != "" && !strings.HasSuffix(r.Output, "\n")
}

type jobAnswerArgs struct {
	Job  string `json:"job" jsonschema:"the job's id"`
	Text string `json:"text,omitempty" jsonschema:"the text to type, as it is"`
	Key  string `json:"key,omitempty"`
}

func (j *jobs) answer(ctx context.Context, a jobAnswerArgs) (*Reply, error) {
	job, err := j.job(ctx, a.Job)
	if err != nil {
		return nil, err
	}
	before := ""
	err = job.Input(ctx, keystrokes(answerArgs{a.Text, a.Key}))
	if errors.Is(err, sandbox.ErrIdle) {
		before, err = "[nothing was typed: the job has ended]\n", nil
	}
	if err != nil {
		return nil, err
	}
	return j.await(ctx, before, job, j.config.earlyEnd, false)
}

type jobArgs struct {
	Job string `json:"job" jsonschema:"the job's id"`
}

func (j *jobs) kill(ctx context.Context, a jobArgs) (*Reply, error) {
	job, err := j.job(ctx, a.Job)
	if err != nil {
		return nil, err
	}
	if err := job.Kill(ctx); err != nil {
		return nil, err
	}
	return &Reply{Text: stateNote(ctx, job, "")}, nil
}

func (j *jobs) list(ctx context.Context, _ noArgs) (*Reply, error) {
	all := j.box.Jobs()
	if len(all) == 0 {
		return &Reply{Text: "[no jobs]\n"}, nil
	}
	lines := make([]string, len(all))
	var noting sync.WaitGroup
	for i, job := range all {
		noting.Go(func() {
			lines[i] = abbreviate(strings.ReplaceAll(job.Command(), "\n", "; ")) + " " +
				stateNote(ctx, job, "")
		})
	}
	noting.Wait()
	return &Reply{Text: shorten(j.config.MaxReply, strings.Join(lines, ""))}, nil
}

// stateNote returns a note that says whether a job is running, waits for input, or how it has
// ended. If more is not "", the note says that too.
func stateNote(ctx context.Context, job sandbox.Job, more string) string {
	how := "is running"
	switch r, err := job.Status(ctx); {
	case errors.Is(err, sandbox.ErrClosed):
		how = "has ended"
	case err != nil && ctx.Err() == nil:
		how = "is gone: " + err.Error()
	case err != nil:
	case r.State == sandbox.Exited:
		how = fmt.Sprintf("has ended with exit status %d", r.ExitCode)
	case r.State == sandbox.Waiting:
		how = waitingNote(ctx, r)
	}
	if more != "" {
		how += "; " + more
	}
	return "[" + job.ID() + " " + how + "]\n"
}

// waitingNote says what a job waits for, and which tool answers.
func waitingNote(ctx context.Context, r *sandbox.Result) string {
	what, types := "a line of input", "it"
	switch r.Awaits {
	case sandbox.Secret:
		what = "a secret, such as a password"
	case sandbox.Keys:
		what, types = "keys", "them"
	}
	if r.MayGoOn {
		return fmt.Sprintf("may be waiting for %s, or still working; %s types %s", what,
			toolName(ctx, "job_answer"), types)
	}
	return fmt.Sprintf("is waiting for %s; %s types %s", what, toolName(ctx, "job_answer"), types)
}

// endLine returns text with a newline at its end, unless text is empty.
func endLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
