package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/sandbox"
)

// Shell returns the tools of a session, such as a box's main session:
//
//	run(command, seconds?)
//	answer(text?, key?)
//	wait(seconds?)
//	interrupt()
//	look()
//	output(offset)
//
// answer types text and then presses key, such as "ctrl-c" or "up". The default key is enter, so
// {"text": "yes"} answers a line. It is none if the text ends in a newline.
//
// Your program may use the session too. What your program's own commands print is not in the log
// that the tool output reads.
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
	return set.withEgress(c, "run")
}

// The descriptions of the tools are short, because a model reads them with every request. They name
// other tools in backquotes, so that Prefix can change the names.
const (
	runText = "Runs a command in a shell that stays: the directory, variables and activated " +
		"environments are still there at the next call. The command may have several lines. " +
		"The reply is what the command prints (stdout and stderr), followed by notes in " +
		"brackets: the exit status if it is not 0, that the command waits for input (use " +
		"`answer`), that it may be waiting for input or still working (use `wait`, or `answer` " +
		"if it has asked something), or that it is still running (use `wait`, `answer` or " +
		"`interrupt`). Only one command runs at a time. If the output is long, its middle is " +
		"left out: use `output` to read it."
	answerText = "Types into the unfinished command: the answer to its question, a password, a " +
		"line for a REPL, or keys for a full-screen program. Then waits as `run` does."
	waitText = "Waits again for the unfinished command, and shows what it has printed since " +
		"the last call."
	interruptText = "Ends the unfinished command: presses Ctrl-C and, if that does not help, " +
		"kills it. The shell stays usable."
	lookText = "Shows the terminal's screen as a person sees it. Use it for full-screen " +
		"programs such as editors and pagers."
	outputText = "Reads what the commands of this shell have printed since the shell began, " +
		"from an offset in bytes. The notes in a shortened output give offsets."

	runSeconds = "how long to wait. A command that takes longer goes on. Default: a minute, or " +
		"until the command has been silent for a while"
	waitSeconds = "how long to wait. Default: a minute, or until the command has been silent " +
		"for a while"
	answerKey = "the key to press after the text, or none. Default: enter, but none if the " +
		"text ends in a newline"
)

// boundSeconds is a change, for newTool, that sets the least and the greatest value of the argument
// seconds.
func boundSeconds(s *jsonschema.Schema) {
	least, most := 0.0, float64(maxSeconds)
	s.Properties["seconds"].Minimum, s.Properties["seconds"].Maximum = &least, &most
}

// oneOf returns a change, for newTool, that sets the values that an argument can have.
func oneOf(name string, values []string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, v := range values {
			s.Properties[name].Enum = append(s.Properties[name].Enum, v)
		}
	}
}

type runArgs struct {
	Command string  `json:"command" jsonschema:"the command, as at the shell's prompt"`
	Seconds float64 `json:"seconds,omitempty"`
}

// The notes around the rest of the last command's output, before the output of the call's command.
const (
	restNote = "[the last command has ended; this is the rest of its output]\n"
	nextNote = "[this is the output of the new command]\n"
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
			return nil, fmt.Errorf("%w. Since the last call it has printed:\n%s",
				state.errUnfinished(), text)
		}
	}
	if s.checkPlugin != nil {
		if err := s.checkPlugin(ctx); err != nil {
			return s.reply(ctx, before, nil, err)
		}
	}
	r, err := s.await(ctx, a.Seconds, true,
		func(opts ...sandbox.ExecOption) (*sandbox.Result, error) {
			return s.session.Execute(ctx, a.Command, opts...)
		})
	return s.reply(ctx, before, r, err)
}

// pollUnfinished returns what the unfinished command has printed since the last reply, and its
// state. It does not wait. It returns nil if the last reply left no command unfinished. Execute
// would drop that output.
func (s *shell) pollUnfinished(ctx context.Context) *sandbox.Result {
	if !s.state.Load().unfinished.Load() {
		return nil
	}
	r, _ := s.session.Wait(ctx, sandbox.MaxOutput(s.config.MaxLog), sandbox.Yield(1))
	return r
}

type answerArgs struct {
	Text string `json:"text,omitempty" jsonschema:"the text to type, as it is"`
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

// isDrawn reports whether a program has moved the cursor up from what it has drawn, as dialog does,
// which does not use the alternate screen. Its output says neither what stands where nor, after a
// key, what is chosen.
func isDrawn(screen *sandbox.Screen) bool {
	below := screen.Lines[min(screen.Row+1, len(screen.Lines)):]
	return slices.ContainsFunc(below, func(line string) bool {
		return strings.TrimSpace(line) != ""
	})
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
	Offset int64 `json:"offset" jsonschema:"where to begin, in bytes"`
}

func (s *shell) output(_ context.Context, a outputArgs) (*Reply, error) {
	text, from, size := s.state.Load().log.read(a.Offset, s.config.MaxReply-noteRoom)
	if a.Offset > size {
		return nil, fmt.Errorf("the offset %d is beyond the end: give an offset up to %d", a.Offset,
			size)
	}
	return &Reply{Text: pageText(text, a.Offset, from, size)}, nil
}

// reply returns what a model gets for a Result, for an error, or for an error with a Result. The
// text begins with before.
func (s *shell) reply(ctx context.Context, before string, r *sandbox.Result,
	err error) (*Reply, error) {
	if r == nil && before != "" { // no later reply reports before
		return nil, fmt.Errorf("%w\n%s", s.explain(err), before)
	}
	if r == nil {
		return nil, s.explain(err)
	}
	state := s.state.Load()
	state.unfinished.Store(r.State != sandbox.Exited)
	state.told.Store(r.MayGoOn)
	if r.State == sandbox.Exited && r.Cwd != "" {
		state.dir.Store(&r.Cwd)
	}
	if err != nil {
		s.state.Load().log.add(r)
		return nil, err
	}
	screen := ""
	keys := r.State == sandbox.Waiting && r.Awaits == sandbox.Keys
	if r.FullScreen || keys {
		if shown, err := s.session.Screen(ctx); err == nil && (r.FullScreen || isDrawn(shown)) {
			screen = screenText(shown)
		}
	}
	return &Reply{Text: before + s.logText(r, s.config.MaxReply-len(before), screen)}, nil
}

// logText adds a Result to the log, and returns its text, which has at most most bytes.
func (s *shell) logText(r *sandbox.Result, most int, screen string) string {
	state := s.state.Load()
	reader := ""
	if state.prefix.Load() != nil {
		reader = state.toolName("output")
	}
	return resultText(r, state.log.add(r), reader, most, screen)
}

// explain returns an error that says what the model can do if a command is unfinished, or if none
// is. It returns all other errors as they are.
func (s *shell) explain(err error) error {
	state := s.state.Load()
	switch {
	case errors.Is(err, sandbox.ErrBusy):
		return state.errUnfinished()
	case errors.Is(err, sandbox.ErrIdle):
		return fmt.Errorf("no command is unfinished: use %s to run one", state.toolName("run"))
	}
	return err
}

// errUnfinished returns the error for a command that was not run because another is unfinished.
func (s *sessionState) errUnfinished() error {
	return fmt.Errorf("the last command is unfinished, so this one was not run: use %s, %s or %s "+
		"first", s.toolName("wait"), s.toolName("answer"), s.toolName("interrupt"))
}
