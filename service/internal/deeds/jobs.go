package deeds

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// maxJobs is how many jobs of a box requests can start, the ended ones included.
const maxJobs = 1000

func (d *deeds) jobOperations() []api.Operation {
	const one = "/jobs/{job}"
	return []api.Operation{
		on(d, "GET", "/jobs", listJobs),
		on(d, "POST", "/jobs", startJob),
		on(d, "GET", one, jobStatus),
		on(d, "DELETE", one, forgetJob),
		on(d, "POST", one+"/wait", waitForJob),
		on(d, "POST", one+"/input", typeToJob),
		on(d, "POST", one+"/signal", signalJob),
		on(d, "POST", one+"/kill", killJob),
		on(d, "GET", one+"/logs", jobLogs),
	}
}

// job returns the job of a request.
func (c *call) job() (sandbox.Job, error) {
	id := c.r.PathValue("job")
	j, ok := c.Job(id)
	if !ok {
		return nil, api.Errorf(http.StatusNotFound, "not_found",
			"there is no job %q in the box: GET …/jobs lists them, and POST starts one", id)
	}
	return j, nil
}

type jobJSON struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Ended   bool   `json:"ended"`
}

func toJSON(j sandbox.Job) jobJSON {
	select {
	case <-j.Done():
		return jobJSON{j.ID(), j.Command(), true}
	default:
		return jobJSON{j.ID(), j.Command(), false}
	}
}

func listJobs(c *call, _, _ *api.None) (any, error) {
	list := listJSON[jobJSON]{Items: []jobJSON{}}
	for _, j := range c.Jobs() {
		list.Items = append(list.Items, toJSON(j))
	}
	return list, nil
}

type jobBody struct {
	Command string `spec:"command"`
	MaxLog  int64  `spec:"max_log_bytes"`
	startBody
}

func startJob(c *call, _ *api.None, body *jobBody) (any, error) {
	const mostLog = 1 << 30
	switch {
	case body.Command == "":
		return nil, api.Invalid("command", "it is missing: write what a person would type")
	case body.MaxLog < 0 || body.MaxLog > mostLog:
		return nil, api.Invalid("max_log_bytes", "%d: write a number from 1 to %d", body.MaxLog,
			mostLog)
	}
	opts, err := body.options()
	if err != nil {
		return nil, err
	}
	if len(c.Jobs()) >= maxJobs {
		return nil, api.Errorf(http.StatusTooManyRequests, "too_many",
			"the box has %d jobs: DELETE one that has ended first", maxJobs)
	}
	j, err := c.Background(c.r.Context(), body.Command, append(opts,
		sandbox.MaxLog(body.MaxLog))...)
	if err != nil {
		return nil, startError(err)
	}
	return toJSON(j), nil
}

func jobStatus(c *call, _, _ *api.None) (any, error) {
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	r, err := j.Status(c.r.Context())
	return executionOf(j.ID(), r, err)
}

func forgetJob(c *call, _, _ *api.None) (any, error) {
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	return success, j.Forget()
}

func waitForJob(c *call, _ *api.None, body *waitBody) (any, error) {
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	return c.answer(j.ID(), &body.waiting, j.Until)
}

func typeToJob(c *call, _ *api.None, body *textBody) (any, error) {
	if body.Text == "" {
		return nil, errNoText
	}
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	return success, j.Input(c.r.Context(), body.Text)
}

type (
	textBody struct {
		Text string `spec:"text"`
	}
	signalBody struct {
		Signal string `spec:"signal"`
	}
)

// signals are Linux's numbers, whatever system this program runs on.
var signals = map[string]syscall.Signal{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10,
	"USR2": 12, "TERM": 15, "CONT": 18, "STOP": 19, "TSTP": 20, "WINCH": 28}

func signalJob(c *call, _ *api.None, body *signalBody) (any, error) {
	sig := signals[strings.TrimPrefix(body.Signal, "SIG")]
	if sig == 0 {
		return nil, api.Invalid("signal", "%q: write one of %s", body.Signal,
			strings.Join(slices.Sorted(maps.Keys(signals)), ", "))
	}
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	return success, j.Signal(c.r.Context(), sig)
}

func killJob(c *call, _, _ *api.None) (any, error) {
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	return success, j.Kill(c.r.Context())
}

type logsQuery struct {
	Offset int64 `query:"offset"`
	Follow bool  `query:"follow"`
}

// A logsJSON is a part of what a job has printed.
type logsJSON struct {
	Offset int64  `json:"offset"`
	Next   int64  `json:"next_offset"`
	Text   string `json:"text"`
	Ended  bool   `json:"ended"`
}

func jobLogs(c *call, q *logsQuery, _ *api.None) (any, error) {
	j, err := c.job()
	if err != nil {
		return nil, err
	}
	if !q.Follow {
		return readLogs(c.r.Context(), j, q.Offset)
	}
	return nil, c.events(func(ctx context.Context, s *events) (any, error) {
		for at := q.Offset; ; {
			part, err := readLogs(ctx, j, at)
			switch {
			case err != nil || part.Ended:
				return part, err
			case part.Next > at:
				at = part.Next
				if err := s.send("log", part); err != nil {
					return nil, err
				}
			default:
				select {
				case <-j.Done():
				case <-time.After(followPause):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
	})
}

// followPause is the time between two looks for what a job has printed.
const followPause = 50 * time.Millisecond

// readLogs reads what a job has printed, in whole runes if there are any.
func readLogs(ctx context.Context, j sandbox.Job, offset int64) (*logsJSON, error) {
	ended := toJSON(j).Ended // before the read: nothing comes after it
	data, next, err := j.Logs(ctx, offset)
	var past *sandbox.OffsetError
	switch {
	case errors.As(err, &past):
		return nil, api.Errorf(http.StatusRequestedRangeNotSatisfiable, "past_the_end",
			"offset: %d: the greatest is %d", past.Offset, past.Size)
	case err != nil:
		return nil, err
	}
	last := ended && len(data) < maxPart
	first := next - int64(len(data))
	if whole := wholeRunes(data); whole > 0 && !last { // the next part has the rune
		data, next = data[:whole], next-int64(len(data)-whole)
	}
	return &logsJSON{first, next, string(data), last}, nil
}

// maxPart is how much one call of Logs returns at most.
const maxPart = 1 << 20
