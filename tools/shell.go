package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/sandbox"
)

// Shell returns the tools of a session, such as a box's main one: run, answer, wait, interrupt,
// look and output. Others may use the session too. The tool output does not have what their
// commands print.
func Shell(s sandbox.Session, c Config) *Set {
	c, err := c.check("Shell: the session", s)
	if err != nil {
		return broken(err)
	}
	sh := newShell(s, c)
	sh.hasTools = true
	set := &Set{shells: []sharedShell{{shell: sh}}, tools: []Tool{
		must(newTool("run", runText, sh.run, boundSeconds, describe("seconds", runSeconds))),
		must(newTool("answer", answerText, sh.answer, oneOf("key", keyNames()),
			describe("key", answerKey))),
		must(newTool("wait", waitText, sh.wait, boundSeconds,
			describe("seconds", waitSeconds))),
		must(newTool("interrupt", interruptText, sh.interrupt)),
		readOnly(must(newTool("look", lookText, sh.look))),
		readOnly(must(newTool("output", outputText, sh.output, atLeast(0, "offset")))),
	}}
	set.share()
	return set
}

// The descriptions of the tools. A model reads them with every request, so they are short. Names of
// other tools are in backquotes, so that Prefix can change them.
const (
	runText = "Runs a command in a shell that stays: directory, variables and activated " +
		"environments are still there at the next call. The command may have several lines. " +
		"The reply is what it prints (stdout and stderr), then notes in brackets: the exit " +
		"status unless it is 0, or that the command waits for input (use `answer`), or that it " +
		"is still running (use `wait`, `answer` or `interrupt`). Only one command runs at a " +
		"time. Long output is shortened in the middle; `output` reads the rest."
	answerText = "Types into the unfinished command: the answer to its question, a password, a " +
		"line for a REPL, keys for a full-screen program. Then waits as `run` does."
	waitText = "Waits again for the unfinished command, and shows what it has printed since " +
		"the last call."
	interruptText = "Ends the unfinished command, with Ctrl-C and, if that does not help, by " +
		"killing it. The shell stays usable."
	lookText = "Shows the terminal's screen as a person sees it. Use it for full-screen " +
		"programs such as editors and pagers."
	outputText = "Reads what the commands of this shell have printed since the shell began, " +
		"from an offset in bytes. The notes in shortened output name offsets."

	runSeconds = "how long to wait; a command that takes longer goes on. Default: a minute, or " +
		"until the command has been silent for a while"
	waitSeconds = "how long to wait. Default: a minute, or until the command has been silent " +
		"for a while"
	answerKey = "the key to press after the text, or none. Default: enter, but none if the " +
		"text ends in a newline"
)

// boundSeconds sets the least and the greatest value of the argument seconds.
func boundSeconds(s *jsonschema.Schema) {
	least, most := 0.0, float64(maxSeconds)
	s.Properties["seconds"].Minimum, s.Properties["seconds"].Maximum = &least, &most
}

// oneOf returns a change that sets the values that an argument can have.
func oneOf(name string, values []string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, v := range values {
			s.Properties[name].Enum = append(s.Properties[name].Enum, v)
		}
	}
}

// waitOptions returns the options of a call that waits. If the model says for how many seconds, the
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

type runArgs struct {
	Command string  `json:"command" jsonschema:"what to type at the shell's prompt"`
	Seconds float64 `json:"seconds,omitempty"`
}

// Notes around the rest of the command before the one of the call.
const (
	restNote = "[the command before has ended; this is the rest of it]\n"
	nextNote = "[this is the command that you run now]\n"
)

func (s *shell) run(ctx context.Context, a runArgs) (*Reply, error) {
	state := s.state.Load()
	if !state.executing.TryLock() {
		return nil, state.errUnfinished()
	}
	defer state.executing.Unlock()
	before := ""
	if r := s.pollUnfinished(ctx); r != nil {
		text := s.logText(r, s.config.MaxReply/2-len(restNote)-len(nextNote), "")
		switch {
		case r.State == sandbox.Exited:
			before = restNote + text + nextNote
		case r.Output == "":
			return nil, state.errUnfinished()
		default:
			return nil, fmt.Errorf("%w. Meanwhile it has printed:\n%s", state.errUnfinished(),
				text)
		}
	}
	if s.checkPlugin != nil {
		if err := s.checkPlugin(ctx); err != nil {
			return s.reply(ctx, before, nil, err)
		}
	}
	r, err := s.session.Execute(ctx, a.Command, s.waitOptions(ctx, a.Seconds)...)
	return s.reply(ctx, before, r, err)
}

// pollUnfinished returns what the command that the last reply left unfinished has printed since,
// and its state, without waiting for it. It returns nil if there is no such command. An Execute
// would drop that output.
func (s *shell) pollUnfinished(ctx context.Context) *sandbox.Result {
	if !s.state.Load().unfinished.Load() {
		return nil
	}
	r, _ := s.session.Wait(ctx, sandbox.MaxOutput(s.config.MaxLog), sandbox.Yield(1))
	return r
}

type answerArgs struct {
	Text string `json:"text,omitempty" jsonschema:"what to type, exactly"`
	Key  string `json:"key,omitempty"`
}

func (s *shell) answer(ctx context.Context, a answerArgs) (*Reply, error) {
	r, err := s.session.Input(ctx, keystrokes(a), s.waitOptions(ctx, 0)...)
	if errors.Is(err, sandbox.ErrIdle) {
		if rest := s.pollUnfinished(ctx); rest != nil {
			return s.reply(ctx, "[nothing was typed: the command has ended]\n", rest, nil)
		}
	}
	return s.reply(ctx, "", r, err)
}

type waitArgs struct {
	Seconds float64 `json:"seconds,omitempty"`
}

func (s *shell) wait(ctx context.Context, a waitArgs) (*Reply, error) {
	r, err := s.session.Wait(ctx, s.waitOptions(ctx, a.Seconds)...)
	if err != nil && ctx.Err() != nil && r != nil {
		// Unlike Execute and Input, Wait leaves the command alone when ctx ends. For the caller of
		// Set.Do all three are the same: what the model waits for.
		s.state.Load().log.add(r)
		stopping, done := context.WithTimeout(context.WithoutCancel(ctx), interruptLimit)
		defer done()
		if r, _ := s.session.Interrupt(stopping, sandbox.MaxOutput(s.config.MaxLog)); r != nil {
			s.state.Load().log.add(r)
		}
		return nil, err
	}
	return s.reply(ctx, "", r, err)
}

// interruptLimit bounds an interruption. Interrupt kills a command that does not obey within
// seconds.
const interruptLimit = 30 * time.Second

type noArgs struct{}

func (s *shell) interrupt(ctx context.Context, _ noArgs) (*Reply, error) {
	r, err := s.session.Interrupt(ctx, sandbox.MaxOutput(s.config.MaxLog))
	return s.reply(ctx, "", r, err)
}

func (s *shell) look(ctx context.Context, _ noArgs) (*Reply, error) {
	screen, err := s.session.Screen(ctx)
	if err != nil {
		return nil, err
	}
	return &Reply{Text: shorten(s.config.MaxReply, screenText(screen))}, nil
}

// screenText returns a screen as text, without the empty lines at its end.
func screenText(screen *sandbox.Screen) string {
	text := strings.TrimRight(strings.Join(screen.Lines, "\n"), "\n")
	if text != "" {
		text += "\n"
	}
	return text + fmt.Sprintf("[the cursor is at line %d, column %d of the screen]\n", screen.Row+1,
		screen.Col+1)
}

type outputArgs struct {
	Offset int64 `json:"offset" jsonschema:"the first byte to read"`
}

func (s *shell) output(_ context.Context, a outputArgs) (*Reply, error) {
	text, from, size := s.state.Load().log.read(a.Offset, s.config.MaxReply-noteRoom)
	if a.Offset > size {
		return nil, fmt.Errorf("the offset %d is beyond the end: %d bytes were printed", a.Offset,
			size)
	}
	return &Reply{Text: pageText(text, a.Offset, from, size)}, nil
}

// reply returns what a model gets for a Result, or for an error with or without one. Its text
// begins with before.
func (s *shell) reply(ctx context.Context, before string, r *sandbox.Result,
	err error) (*Reply, error) {
	if r == nil && before != "" { // no later reply will report it
		return nil, fmt.Errorf("%w\n%s", s.explain(err), before)
	}
	if r == nil {
		return nil, s.explain(err)
	}
	state := s.state.Load()
	state.unfinished.Store(r.State != sandbox.Exited)
	if r.State == sandbox.Exited && r.Cwd != "" {
		state.dir.Store(&r.Cwd)
	}
	if err != nil {
		s.state.Load().log.add(r)
		return nil, err
	}
	screen := ""
	if r.FullScreen {
		if shown, err := s.session.Screen(ctx); err == nil {
			screen = screenText(shown)
		}
	}
	return &Reply{Text: before + s.logText(r, s.config.MaxReply-len(before), screen)}, nil
}

// logText adds a Result to the log, and returns it as text of at most most bytes.
func (s *shell) logText(r *sandbox.Result, most int, screen string) string {
	state := s.state.Load()
	reader := ""
	if state.prefix.Load() != nil {
		reader = state.toolName("output")
	}
	return resultText(r, state.log.add(r), reader, most, screen)
}

// explain returns an error that says what the model can do about err.
func (s *shell) explain(err error) error {
	state := s.state.Load()
	switch {
	case errors.Is(err, sandbox.ErrBusy):
		return state.errUnfinished()
	case errors.Is(err, sandbox.ErrIdle):
		return fmt.Errorf("no command is unfinished: %s runs one", state.toolName("run"))
	}
	return err
}

// errUnfinished returns the error for a command while another one is unfinished.
func (s *sessionState) errUnfinished() error {
	return fmt.Errorf("the last command is unfinished, so this one was not run: use %s, %s or %s "+
		"first", s.toolName("wait"), s.toolName("answer"), s.toolName("interrupt"))
}
