package deeds

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// maxSeconds and maxOutput bound what a request may ask for.
const (
	maxSeconds = 366 * 24 * 60 * 60
	maxOutput  = 4 << 20
)

// waiting says when a call about a command returns.
type waiting struct {
	Timeout    float64  `spec:"timeout_seconds"`
	Yield      float64  `spec:"yield_seconds"`
	Idle       float64  `spec:"idle_seconds"`
	Until      string   `spec:"until"`
	AtQuestion string   `spec:"at_question"`
	Patience   *float64 `spec:"patience_seconds"`
	MaxOutput  int64    `spec:"max_output_bytes"`
}

type (
	executeBody struct {
		Command string `spec:"command"`
		Session string `spec:"session"`
		waiting
	}
	inputBody struct {
		Text string `spec:"text"`
		waiting
	}
	waitBody struct{ waiting }
)

var policies = map[string]sandbox.Policy{
	"": sandbox.Return, "return": sandbox.Return, "end_input": sandbox.EndInput,
	"fail": sandbox.Fail, "keep_waiting": sandbox.KeepWaiting,
}

// options returns the options of a call.
func (w *waiting) options() ([]sandbox.ExecOption, error) {
	opts := []sandbox.ExecOption{sandbox.Leave()}
	for _, t := range []struct {
		name    string
		seconds float64
		option  func(time.Duration) sandbox.ExecOption
	}{
		{"timeout_seconds", w.Timeout, sandbox.Timeout},
		{"yield_seconds", w.Yield, sandbox.Yield},
		{"idle_seconds", w.Idle, sandbox.Idle},
	} {
		if t.seconds < 0 || t.seconds > maxSeconds {
			return nil, api.Invalid(t.name, "%v: write seconds from 0 to %d; 0 means no limit",
				t.seconds, maxSeconds)
		}
		opts = append(opts, t.option(seconds(t.seconds)))
	}
	if p := w.Patience; p != nil {
		if *p > maxSeconds {
			return nil, api.Invalid("patience_seconds", "%v: write at most %d, or -1 for no end",
				*p, maxSeconds)
		}
		opts = append(opts, sandbox.Patience(seconds(max(*p, -1))))
	}
	if w.Until != "" {
		re, err := regexp.Compile(w.Until)
		if err != nil {
			return nil, api.Invalid("until", "%v", err)
		}
		opts = append(opts, sandbox.Until(re))
	}
	policy, ok := policies[w.AtQuestion]
	if !ok {
		return nil, api.Invalid("at_question", "%q: write return, end_input, fail or keep_waiting",
			w.AtQuestion)
	}
	if w.MaxOutput < 0 || w.MaxOutput > maxOutput {
		return nil, api.Invalid("max_output_bytes", "%d: write a number from 1 to %d", w.MaxOutput,
			maxOutput)
	}
	return append(opts, sandbox.AtQuestion(policy), sandbox.MaxOutput(int(w.MaxOutput))), nil
}

// seconds returns a time that is no less than a nanosecond, unless s is 0.
func seconds(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	if d == 0 && s > 0 {
		d = 1
	}
	return d
}

// An execution is the answer about a command.
type execution struct {
	Session    string  `json:"session"`
	State      string  `json:"state"`
	ExitCode   *int    `json:"exit_code"`
	Awaits     *string `json:"awaits"`
	MayGoOn    bool    `json:"may_go_on"`
	Output     string  `json:"output"`
	Omitted    int64   `json:"omitted_bytes"`
	OmittedAt  int     `json:"omitted_at"`
	EndedBy    *string `json:"ended_by"`
	OOM        bool    `json:"oom"`
	Unread     int     `json:"unread_bytes"`
	FullScreen bool    `json:"full_screen"`
	Matched    *string `json:"matched"`
	Dir        *string `json:"working_dir"`
	Restarted  bool    `json:"restarted"`
	Incomplete bool    `json:"incomplete"`
	Duration   float64 `json:"duration_seconds"`
}

// executionOf returns the answer for what a call about a command of a session has returned.
func executionOf(session string, r *sandbox.Result, err error) (*execution, error) {
	endedBy := ""
	switch {
	case r == nil:
		return nil, err
	case errors.Is(err, sandbox.ErrQuestion):
		endedBy = "question"
	case errors.Is(err, sandbox.ErrTimeout):
		endedBy = "timeout"
	case errors.Is(err, exec.ErrWaitDelay): // the client of a stream does not read
	case err != nil:
		return nil, err
	}
	e := &execution{Session: session, State: r.State.String(), MayGoOn: r.MayGoOn, Output: r.Output,
		Omitted: r.Omitted, OmittedAt: r.OmittedAt, EndedBy: nullable(endedBy), OOM: r.OOM,
		Unread: r.Unread, FullScreen: r.FullScreen, Matched: nullable(r.Matched),
		Dir: nullable(r.Cwd), Restarted: r.Restarted, Incomplete: r.Incomplete,
		Duration: r.Duration.Seconds()}
	switch r.State {
	case sandbox.Exited:
		e.ExitCode = &r.ExitCode
	case sandbox.Waiting:
		e.Awaits = nullable(r.Awaits.String())
	}
	return e, nil
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// execute serves POST execute.
func execute(c *call, _ *api.None, body *executeBody) (any, error) {
	if body.Command == "" {
		return nil, api.Invalid("command", "it is missing: write what a person would type")
	}
	name := body.Session
	if name == "" {
		name = "main"
	}
	return c.about(name, &body.waiting, func(ctx context.Context, s sandbox.Session,
		opts ...sandbox.ExecOption) (*sandbox.Result, error) {
		return s.Execute(ctx, body.Command, opts...)
	})
}

var errNoText = api.Invalid("text", "it is missing: write what to type, with its \"\\n\"")

// input serves POST input.
func input(c *call, _ *api.None, body *inputBody) (any, error) {
	if body.Text == "" {
		return nil, errNoText
	}
	return c.about(c.r.PathValue("session"), &body.waiting, func(ctx context.Context,
		s sandbox.Session, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
		return s.Input(ctx, body.Text, opts...)
	})
}

// wait serves POST wait.
func wait(c *call, _ *api.None, body *waitBody) (any, error) {
	return c.about(c.r.PathValue("session"), &body.waiting, func(ctx context.Context,
		s sandbox.Session, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
		return s.Wait(ctx, opts...)
	})
}

// interrupt serves POST interrupt.
func interrupt(c *call, _ *api.None, body *waitBody) (any, error) {
	return c.about(c.r.PathValue("session"), &body.waiting, func(ctx context.Context,
		s sandbox.Session, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
		return s.Interrupt(ctx, opts...)
	})
}

// about makes a call about the command of a session, and answers with its Result.
func (c *call) about(session string, w *waiting, do func(context.Context, sandbox.Session,
	...sandbox.ExecOption) (*sandbox.Result, error)) (any, error) {
	s, err := c.session(session)
	if err != nil {
		return nil, err
	}
	return c.answer(session, w, func(ctx context.Context,
		opts ...sandbox.ExecOption) (*sandbox.Result, error) {
		return do(ctx, s, opts...)
	})
}

// answer makes a call about a command, and answers with its Result. If the client asks for events,
// it gets the output as it comes.
func (c *call) answer(name string, w *waiting, do func(context.Context,
	...sandbox.ExecOption) (*sandbox.Result, error)) (any, error) {
	opts, err := w.options()
	if err != nil {
		return nil, err
	}
	if !wantsEvents(c.r) {
		r, err := do(c.r.Context(), opts...)
		return executionOf(name, r, err)
	}
	return nil, c.events(func(ctx context.Context, s *events) (any, error) {
		r, err := do(ctx, append(opts, sandbox.Tee(s))...)
		return executionOf(name, r, err)
	})
}
