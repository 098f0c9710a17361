package tools

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A Config has the settings of a set of tools. Box, Shell, Jobs, Files, Python, Skills and Browser
// each use the fields that concern them. The zero value is usable.
type Config struct {
	// MaxReply is how many bytes the text of a reply has at most. It is at least MinReply.
	// Default: DefaultMaxReply, 16 KiB.
	MaxReply int
	// MaxLog is how many bytes of a shell's output are kept in memory, for the tool output to read:
	// the last ones. Offsets stay those of the whole output. If one command prints more than MaxLog
	// between two calls, only the last MaxLog/2 bytes of that are kept. Default: DefaultMaxLog,
	// 16 MiB.
	MaxLog int
	// MaxSilence is how long a command may print nothing before a call stops waiting for it. The
	// command goes on. It does not apply where the model says how long to wait. Default:
	// DefaultMaxSilence, 15 s. If MaxSilence is negative, a call waits however silent the command
	// is.
	MaxSilence time.Duration
	// MaxWait is how long a call waits for a command, a job, a cell or a file, unless the model
	// says how long. Default: DefaultMaxWait, a minute.
	MaxWait time.Duration

	early time.Duration // how long job_start waits for an end; tests set it
}

// The defaults of Config, and the least MaxReply.
const (
	DefaultMaxReply   = 16 << 10 // bytes: some 4,000 tokens
	DefaultMaxLog     = 16 << 20 // bytes
	DefaultMaxSilence = 15 * time.Second
	DefaultMaxWait    = time.Minute

	// MinReply leaves room for the notes beside an output, and for the rest of the output before.
	MinReply = 2 << 10 // bytes
)

// earlyEnd is how long job_start waits for a command that ends at once: one that is not found, or a
// server whose port is taken.
const earlyEnd = 300 * time.Millisecond

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.MaxReply != 0 && c.MaxReply < MinReply:
		return c, fmt.Errorf("Config.MaxReply: %d bytes are too few: give at least %d, or 0 for "+
			"the default", c.MaxReply, MinReply)
	case c.MaxLog < 0:
		return c, fmt.Errorf("Config.MaxLog: %d bytes: give a positive number, or 0 for the "+
			"default", c.MaxLog)
	case c.MaxWait < 0:
		return c, fmt.Errorf("Config.MaxWait: %v: give a positive time, or 0 for the default",
			c.MaxWait)
	}
	if c.MaxReply == 0 {
		c.MaxReply = DefaultMaxReply
	}
	if c.MaxLog == 0 {
		c.MaxLog = DefaultMaxLog
	}
	if c.MaxSilence == 0 {
		c.MaxSilence = DefaultMaxSilence
	}
	if c.MaxWait == 0 {
		c.MaxWait = DefaultMaxWait
	}
	if c.early == 0 {
		c.early = earlyEnd
	}
	return c, nil
}

// check returns c with its defaults. If v is nil, the error says that what is nil.
func (c Config) check(what string, v any) (Config, error) {
	if isNil(v) {
		return c, fmt.Errorf("%s is nil", what)
	}
	return c.withDefaults()
}

// waitFor returns how long a call waits if the model asks for so many seconds, 0 if it does not.
func (c *Config) waitFor(seconds float64) time.Duration {
	if seconds <= 0 {
		return c.MaxWait
	}
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second))
}

// maxSeconds is the longest time for which a model can have a call wait: a day.
const maxSeconds = 86400

type outputKey struct{}

// WithOutput returns a context for calls of tools. What their commands and cells print goes to w as
// it comes, as with sandbox.Tee: somebody can watch a call that takes long.
func WithOutput(ctx context.Context, w io.Writer) context.Context {
	return context.WithValue(ctx, outputKey{}, w)
}

// outputOf returns the writer of WithOutput, nil if there is none.
func outputOf(ctx context.Context) io.Writer {
	w, _ := ctx.Value(outputKey{}).(io.Writer)
	return w
}
