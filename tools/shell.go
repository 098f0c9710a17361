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
// look and output. The session stays usable by others; what is run there by others than the tools
// does not get into output's log.
func Shell(s sandbox.Session, opts ...Option) *Set {
	if isNil(s) {
		return broken("Shell: the session is nil")
	}
	sh := newShell(s, opts)
	sh.tools = true
	set := &Set{shells: []sharedShell{{shell: sh}}, tools: []Tool{
		must(newTool("run", runText, sh.run, orderly)),
		must(newTool("answer", answerText, sh.answer, oneOf("key", keyNames()))),
		must(newTool("wait", waitText, sh.wait, orderly)),
		must(newTool("interrupt", interruptText, sh.interrupt)),
		readOnly(must(newTool("look", lookText, sh.look))),
		readOnly(must(newTool("output", outputText, sh.output, atLeast(0, "offset")))),
	}}
	set.share()
	return set
}

// What the tools say of themselves. A description is read with every request to the model: as short
// as can be. Other tools' names are in backquotes: Prefix changes them.
const (
	runText = "Runs a command in a shell that stays: directory, variables and activated " +
		"environments are still there at the next call. " +
		"The command may have several lines. The reply is what it prints (stdout and stderr), " +
		"then notes in brackets: the exit status unless it is 0, " +
		"or that the command waits for input (use `answer`), or that it is still running (use " +
		"`wait`, `answer` or `interrupt`). " +
		"Only one command runs at a time. Long output is shortened in the middle; `output` reads " +
		"the rest."
	answerText = "Types into the unfinished command: the answer to its question, a password, a " +
		"line for a REPL, keys for a full-screen program. " +
		"Then waits as `run` does."
	waitText      = "Waits on for the unfinished command, and returns what it has printed since."
	interruptText = "Ends the unfinished command: with Ctrl-C, and if need be by killing it. The " +
		"shell stays usable."
	lookText = "Shows the terminal's screen as a person sees it now. For full-screen " +
		"programs such as editors and pagers."
	outputText = "Reads, from an offset in bytes, what commands of this shell have printed: " +
		"all since the shell's start, one after the other. " +
		"Offsets are in the notes of shortened output."
)

// orderly bounds what is said in seconds.
func orderly(s *jsonschema.Schema) {
	least, most := 0.0, float64(maxSeconds)
	s.Properties["seconds"].Minimum, s.Properties["seconds"].Maximum = &least, &most
}

// oneOf sets the values that an argument can have.
func oneOf(name string, values []string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, v := range values {
			s.Properties[name].Enum = append(s.Properties[name].Enum, v)
		}
	}
}

// exec returns the options of a call that waits. Who names a time has it, silence or not.
func (s *shell) exec(ctx context.Context, seconds float64) []sandbox.ExecOption {
	opts := []sandbox.ExecOption{sandbox.MaxOutput(s.options.keep),
		sandbox.Yield(s.options.limit(seconds))}
	if seconds <= 0 {
		opts = append(opts, sandbox.Idle(max(s.options.idle, 0)))
	}
	if w := outputOf(ctx); w != nil {
		opts = append(opts, sandbox.Tee(w))
	}
	return opts
}

type runArgs struct {
	Command string  `json:"command" jsonschema:"what to type at the shell's prompt"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"return after so many seconds even if the command still runs; it goes on. Default: a minute, or when it has been silent for a while"`
}

// What a reply says around the rest of the command before.
const (
	restOfBefore = "[the command before has ended; this is the rest of it]\n"
	runNow       = "[this is the command that you run now]\n"
)

func (s *shell) run(ctx context.Context, a runArgs) (*Reply, error) {
	state := s.state.Load()
	if !state.turn.TryLock() {
		return nil, state.unfinished()
	}
	defer state.turn.Unlock()
	before := ""
	if r := s.meanwhile(ctx); r != nil {
		text := s.text(r, s.options.budget/2-len(restOfBefore)-len(runNow), "")
		switch {
		case r.State == sandbox.Exited:
			before = restOfBefore + text + runNow
		case r.Output == "":
			return nil, state.unfinished()
		default:
			return nil, fmt.Errorf("%w. Meanwhile it has printed:\n%s", state.unfinished(), text)
		}
	}
	if s.missing != nil {
		if err := s.missing(ctx); err != nil {
			return s.reply(ctx, before, nil, err)
		}
	}
	r, err := s.session.Execute(ctx, a.Command, s.exec(ctx, a.Seconds)...)
	return s.reply(ctx, before, r, err)
}

// meanwhile returns what has come of the command that the last reply left, without waiting for it;
// nil if there is none. An Execute would drop it.
func (s *shell) meanwhile(ctx context.Context) *sandbox.Result {
	if !s.state.Load().left.Load() {
		return nil
	}
	r, _ := s.session.Wait(ctx, sandbox.MaxOutput(s.options.keep), sandbox.Yield(1))
	return r
}

type answerArgs struct {
	Text string `json:"text,omitempty" jsonschema:"what to type, as it is"`
	Key  string `json:"key,omitempty" jsonschema:"the key to press after the text; none to press no key. Default: enter, and none if the text ends in a newline"`
}

func (s *shell) answer(ctx context.Context, a answerArgs) (*Reply, error) {
	r, err := s.session.Input(ctx, typed(a), s.exec(ctx, 0)...)
	if errors.Is(err, sandbox.ErrIdle) {
		if rest := s.meanwhile(ctx); rest != nil {
			return s.reply(ctx, "[nothing was typed: the command has ended]\n", rest, nil)
		}
	}
	return s.reply(ctx, "", r, err)
}

type waitArgs struct {
	Seconds float64 `json:"seconds,omitempty" jsonschema:"wait at most so many seconds. Default: a minute, or until it has been silent for a while"`
}

func (s *shell) wait(ctx context.Context, a waitArgs) (*Reply, error) {
	r, err := s.session.Wait(ctx, s.exec(ctx, a.Seconds)...)
	if err != nil && ctx.Err() != nil && r != nil {
		// Unlike Execute, Wait leaves the command alone when ctx ends. To a model's caller all
		// three are one thing: what the model waits for.
		s.state.Load().log.add(r)
		stopping, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		if r, _ := s.session.Interrupt(stopping, sandbox.MaxOutput(s.options.keep)); r != nil {
			s.state.Load().log.add(r)
		}
		return nil, err
	}
	return s.reply(ctx, "", r, err)
}

// stopTimeout bounds an interruption. Interrupt kills what does not obey within seconds.
const stopTimeout = 30 * time.Second

type noArgs struct{}

func (s *shell) interrupt(ctx context.Context, _ noArgs) (*Reply, error) {
	r, err := s.session.Interrupt(ctx, sandbox.MaxOutput(s.options.keep))
	return s.reply(ctx, "", r, err)
}

func (s *shell) look(ctx context.Context, _ noArgs) (*Reply, error) {
	screen, err := s.session.Screen(ctx)
	if err != nil {
		return nil, err
	}
	return &Reply{Text: cut(s.options.budget, screenText(screen))}, nil
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
	text, from, size := s.state.Load().log.read(a.Offset, s.options.budget-noteRoom)
	if a.Offset > size {
		return nil, fmt.Errorf("the offset %d is beyond the %d bytes that there are", a.Offset,
			size)
	}
	return &Reply{Text: page(text, a.Offset, from, size)}, nil
}

// reply is what a model gets for a result, or an error beside one; before is said first.
func (s *shell) reply(ctx context.Context, before string, r *sandbox.Result,
	err error) (*Reply, error) {
	if r == nil && before != "" { // it is told only now
		return nil, fmt.Errorf("%w\n%s", s.mend(err), before)
	}
	if r == nil {
		return nil, s.mend(err)
	}
	state := s.state.Load()
	state.left.Store(r.State != sandbox.Exited)
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
	return &Reply{Text: before + s.text(r, s.options.budget-len(before), screen)}, nil
}

// text puts a result into the log, and returns it as text of at most budget bytes.
func (s *shell) text(r *sandbox.Result, budget int, screen string) string {
	state := s.state.Load()
	reader := ""
	if state.prefix.Load() != nil {
		reader = state.named("output")
	}
	return resultText(r, state.log.add(r), reader, budget, screen)
}

// mend says what a model can do about an error.
func (s *shell) mend(err error) error {
	state := s.state.Load()
	switch {
	case errors.Is(err, sandbox.ErrBusy):
		return state.unfinished()
	case errors.Is(err, sandbox.ErrIdle):
		return fmt.Errorf("no command is unfinished: %s runs one", state.named("run"))
	}
	return err
}

// unfinished is the error for a command while another is unfinished.
func (s *sessionState) unfinished() error {
	return fmt.Errorf("the last command is unfinished, so this one was not run: use %s, %s or %s "+
		"first",
		s.named("wait"), s.named("answer"), s.named("interrupt"))
}
