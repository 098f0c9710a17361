package tools

import (
	"context"
	"io"
	"time"
)

// An Option is an option of Shell, Jobs, Files, Python, Skills and Browser; each heeds those that
// concern it.
type Option func(*options)

type options struct {
	budget int
	keep   int
	idle   time.Duration
	yield  time.Duration
	early  time.Duration
}

// The defaults of the options.
const (
	DefaultBudget = 16 << 10 // bytes: some 4,000 tokens
	DefaultKeep   = 16 << 20 // bytes
	DefaultIdle   = 15 * time.Second
	DefaultYield  = time.Minute
)

// earlyEnd is how long job_start waits for a command that ends at once: one that is not found, a
// server whose port is taken.
const earlyEnd = 300 * time.Millisecond

// minBudget leaves room for what has to be said beside an output, and beside the rest of the one
// before.
const minBudget = 2 << 10

func newOptions(opts []Option) options {
	o := options{budget: DefaultBudget, keep: DefaultKeep, idle: DefaultIdle, yield: DefaultYield,
		early: earlyEnd}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Budget bounds the text of a reply to n bytes, which is at least 2 KiB. Default, for zero or less
// too: 16 KiB.
func Budget(n int) Option {
	return func(o *options) {
		o.budget = max(n, minBudget)
		if n <= 0 {
			o.budget = DefaultBudget
		}
	}
}

// Keep sets how many bytes of a shell's output are kept in memory for the tool output, the last
// ones. Offsets stay those of the whole output. If one command prints more between two calls, only
// its last n/2 are. Default, for zero or less too: 16 MiB.
func Keep(n int) Option {
	return func(o *options) {
		o.keep = n
		if n <= 0 {
			o.keep = DefaultKeep
		}
	}
}

// Idle sets after how much silence a call no longer waits for a command that runs on. Default: 15
// s. Negative: silence does not count.
func Idle(d time.Duration) Option {
	return func(o *options) {
		o.idle = d
		if d == 0 {
			o.idle = DefaultIdle
		}
	}
}

// Yield sets how long a call waits for a command, a job or a cell, unless the model says otherwise.
// Default, for zero or less too: a minute.
func Yield(d time.Duration) Option {
	return func(o *options) {
		o.yield = d
		if d <= 0 {
			o.yield = DefaultYield
		}
	}
}

// limit is how long a call waits if the model asks for so many seconds.
func (o *options) limit(seconds float64) time.Duration {
	if seconds <= 0 {
		return o.yield
	}
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second))
}

// maxSeconds is the longest that a model can have a call wait: a day.
const maxSeconds = 86400

type outputKey struct{}

// WithOutput returns a context whose calls copy what commands and cells print to w, as it comes, as
// sandbox.Tee does: for those who watch a call that takes long.
func WithOutput(ctx context.Context, w io.Writer) context.Context {
	return context.WithValue(ctx, outputKey{}, w)
}

// outputOf returns the writer of WithOutput, nil if there is none.
func outputOf(ctx context.Context) io.Writer {
	w, _ := ctx.Value(outputKey{}).(io.Writer)
	return w
}
