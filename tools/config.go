package tools

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A Config has the settings of a set of tools. Box, Shell, Jobs, Files, History, Python, Skills and
// Browser each use the fields that concern them. The zero value is usable.
type Config struct {
	// MaxReply is the greatest size of a reply's text, in bytes. The least value is MinReply.
	// Default: DefaultMaxReply, 16 KiB.
	MaxReply int
	// MaxLog is how many bytes of a shell's output are kept in memory for the tool output: the last
	// ones. Offsets count the whole output. If one command prints more than MaxLog between two
	// calls, only the last MaxLog/2 bytes of that are kept. Default: DefaultMaxLog, 16 MiB.
	MaxLog int
	// MaxSilence is how long a command may print nothing before a call stops waiting for it. The
	// command goes on. If the model says how long to wait, MaxSilence does not apply. Default:
	// DefaultMaxSilence, 15 s. If MaxSilence is negative, silence ends no wait.
	MaxSilence time.Duration
	// MaxWait is how long a call waits for a command, a job, a cell or a file if the model does not
	// say how long. Default: DefaultMaxWait, a minute.
	MaxWait time.Duration
	// Skills gives Box the tools of Skills too, with the prefix "skill_". The box then needs the
	// plugin agentskills.
	Skills bool
	// History gives Box the tools checkpoint and restore, for the files of this directory of the
	// box. A relative path starts at the main session's directory. Default: none.
	History string
	// Egress is the box's way out, such as an *egress.Exit. With it, the descriptions of run and
	// python say what programs may reach, and the replies of all tools that run something in the
	// box tell what was refused since the last reply. Default: none. A nil pointer is none too.
	Egress Egress

	earlyEnd time.Duration // 0 means defaultEarlyEnd; tests set it
}

// The defaults of Config, and the least MaxReply.
const (
	DefaultMaxReply   = 16 << 10 // bytes: some 4,000 tokens
	DefaultMaxLog     = 16 << 20 // bytes
	DefaultMaxSilence = 15 * time.Second
	DefaultMaxWait    = time.Minute

	// MinReply leaves room for an output, the notes around it, and the rest of the output before.
	MinReply = 2 << 10 // bytes
)

// defaultEarlyEnd is how long job_start waits for the end of its command. A command ends at once if
// its program is not found, or if a server's port is taken.
const defaultEarlyEnd = 300 * time.Millisecond

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
	if isNil(c.Egress) {
		c.Egress = nil
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
	if c.earlyEnd == 0 {
		c.earlyEnd = defaultEarlyEnd
	}
	return c, nil
}

// check returns c with its defaults. If v is nil, the error says so, and calls v what.
func (c Config) check(what string, v any) (Config, error) {
	if isNil(v) {
		return c, fmt.Errorf("%s is nil: check the error of the call that made it", what)
	}
	return c.withDefaults()
}

// waitFor returns how long a call waits. seconds is what the model has asked for, and 0 if it has
// not.
func (c *Config) waitFor(seconds float64) time.Duration {
	if seconds <= 0 {
		return c.MaxWait
	}
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second))
}

// maxSeconds is how long a model can make a call wait: a day.
const maxSeconds = 86400

type outputKey struct{}

// WithOutput returns a context for calls of tools. The raw output of their commands and cells goes
// to w as it comes, as with sandbox.Tee. With it a program can show a long call's progress.
func WithOutput(ctx context.Context, w io.Writer) context.Context {
	return context.WithValue(ctx, outputKey{}, w)
}

// outputOf returns the writer of WithOutput, and nil if there is none.
func outputOf(ctx context.Context) io.Writer {
	w, _ := ctx.Value(outputKey{}).(io.Writer)
	return w
}
