package tools

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// waitOptions returns the options of a call that waits. If the model says how many seconds, the
// call waits that long, even if the command is silent.
func (s *shell) waitOptions(ctx context.Context, seconds float64) []sandbox.ExecOption {
	opts := []sandbox.ExecOption{sandbox.MaxOutput(s.config.MaxLog),
		sandbox.Yield(s.config.waitFor(seconds))}
	if seconds <= 0 {
		opts = append(opts, sandbox.Idle(max(s.config.MaxSilence, 0)))
	}
	if w := outputOf(ctx); w != nil {
		opts = append(opts, sandbox.Tee(w))
	}
	return opts
}

// await makes a call, and returns its Result. If the model says how many seconds, a command that
// may go on by itself gets that time, unless it shows a new question. isNew says that the last
// reply has not told of the command's question.
func (s *shell) await(ctx context.Context, seconds float64, isNew bool,
	call func(opts ...sandbox.ExecOption) (*sandbox.Result, error)) (*sandbox.Result, error) {
	began, opts := time.Now(), s.waitOptions(ctx, seconds)
	r, err := call(opts...)
	for seconds > 0 && err == nil && r.MayGoOn {
		left := s.config.waitFor(seconds) - time.Since(began)
		if left <= 0 || (isNew || r.Output != "") && s.showsQuestion(ctx, r) {
			break
		}
		var next *sandbox.Result
		next, err = s.waitOrInterrupt(ctx,
			append(opts[:len(opts):len(opts)], sandbox.Yield(left))...)
		isNew, r = false, s.joined(r, next)
	}
	return r, err
}

// waitOrInterrupt waits for the unfinished command. When ctx ends, Execute and Input interrupt the
// command, and Wait does not. Set.Do promises the interruption for all three.
func (s *shell) waitOrInterrupt(ctx context.Context,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	r, err := s.session.Wait(ctx, opts...)
	if err == nil || ctx.Err() == nil || r == nil {
		return r, err
	}
	stopping, done := context.WithTimeout(context.WithoutCancel(ctx), interruptLimit)
	defer done()
	end, _ := s.session.Interrupt(stopping, sandbox.MaxOutput(s.config.MaxLog))
	return s.joined(r, end), err
}

// interruptLimit is how long an interruption may take. Interrupt kills a command that does not obey
// within seconds.
const interruptLimit = 30 * time.Second

// showsQuestion reports whether the terminal shows a question.
func (s *shell) showsQuestion(ctx context.Context, r *sandbox.Result) bool {
	if r.Awaits != sandbox.Line || r.FullScreen {
		return true
	}
	screen, err := s.session.Screen(ctx)
	return err != nil || screen.Col > 0
}

// joined returns the Result of two calls about a command. second may be nil.
func (s *shell) joined(first, second *sandbox.Result) *sandbox.Result {
	if second == nil {
		return first
	}
	r := *second
	if r.State == sandbox.Running && r.Output == "" { // what is known of its question is still true
		r.State, r.Awaits, r.MayGoOn = first.State, first.Awaits, first.MayGoOn
	}
	r.Output, r.OmittedAt, r.Omitted = joinedOutput(first, second)
	if len(r.Output) > s.config.MaxLog {
		head, tail, omitted := cutResult(&r, s.config.MaxLog)
		r.Output, r.OmittedAt, r.Omitted = head+tail, len(head), omitted
	}
	return &r
}

// joinedOutput returns the output of two Results, one after the other. If both have a gap, what is
// between the gaps is left out, too.
func joinedOutput(first, second *sandbox.Result) (output string, at int, omitted int64) {
	switch {
	case first.Omitted > 0 && second.Omitted > 0:
		between := len(first.Output) - first.OmittedAt + second.OmittedAt
		return first.Output[:first.OmittedAt] + second.Output[second.OmittedAt:], first.OmittedAt,
			first.Omitted + int64(between) + second.Omitted
	case first.Omitted > 0:
		at = first.OmittedAt
	case second.Omitted > 0:
		at = len(first.Output) + second.OmittedAt
	}
	return first.Output + second.Output, at, first.Omitted + second.Omitted
}

type waitArgs struct {
	Seconds float64 `json:"seconds,omitempty"`
}

func (s *shell) wait(ctx context.Context, a waitArgs) (*Reply, error) {
	r, err := s.await(ctx, a.Seconds, !s.state.Load().told.Load(),
		func(opts ...sandbox.ExecOption) (*sandbox.Result, error) {
			return s.waitOrInterrupt(ctx, opts...)
		})
	return s.reply(ctx, "", r, err)
}
