package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/lazy"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
)

// Python returns the tools of an IPython kernel in a box that has the plugin jupyter: python and
// python_restart. The kernel starts with the first cell, and is the box's default one, which
// execute_cli in the box uses too. A cell that runs longer than Yield, or than the model says, is
// interrupted. Figures are a Reply's Images.
func Python(box sandbox.Sandbox, opts ...Option) *Set {
	if isNil(box) {
		return broken("Python: the box is nil")
	}
	connect := func(ctx context.Context) (*jupyter.Client, error) {
		client, err := jupyter.Connect(ctx, box, jupyter.Config{})
		if errors.Is(err, jupyter.ErrNotInstalled) {
			err = programError{err}
		}
		return client, err
	}
	p := &python{options: newOptions(opts), client: lazy.New(connect)}
	return &Set{closers: []func() error{once("the kernel's Close", p.client.Close)}, tools: []Tool{
		must(newTool("python", pythonText, p.run, orderly)),
		must(newTool("python_restart", pythonRestartText, p.restart)),
	}}
}

const (
	pythonText = "Runs Python in a notebook's kernel: what earlier calls have defined is still " +
		"there. " +
		"The reply is what the code prints, the value of its last expression, and the traceback " +
		"if it raises. " +
		"Figures are shown. Code may use magics and await; input() raises an error; exit() ends " +
		"the kernel."
	pythonRestartText = `Starts a fresh kernel: all that was defined is gone.`
)

type python struct {
	options options
	client  *lazy.Value[*jupyter.Client]
}

type pythonArgs struct {
	Code    string  `json:"code" jsonschema:"the cell"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"interrupt the cell after so many seconds. Default: a minute"`
}

// What is said behind a cell's output.
const (
	exitNote   = "[the code has ended the kernel, by exit or quit: %s starts a fresh one]\n"
	stuckNote  = "[still running: interrupted after %v, and again, it goes on; %s ends it]\n"
	queuedNote = "[not run: for %v the kernel ran another cell; if that is stuck, %s ends it]\n"
)

// images are the pictures that models are shown.
var images = []string{jupyter.ImagePNG, jupyter.ImageJPEG, jupyter.ImageGIF, "image/webp"}

var errCellTime = errors.New("the cell's time is over")

func (p *python) run(ctx context.Context, a pythonArgs) (*Reply, error) {
	client, err := p.client.Get(ctx)
	if err != nil {
		return nil, err
	}
	limit := p.options.limit(a.Seconds).Round(time.Millisecond)
	bounded, done := ctxerr.WithLimit(ctx, limit, errCellTime)
	defer done()
	var opts []jupyter.RunOption
	if w := outputOf(ctx); w != nil {
		opts = append(opts, jupyter.Stream(func(e jupyter.Event) {
			_, _ = w.Write([]byte(e.Stdout + e.Stderr)) // as with Tee, its error is not the cell's
		}))
	}
	r, err := client.Run(bounded, a.Code, opts...)
	var dead *jupyter.DeadError
	restart := named(ctx, "python_restart")
	switch {
	case err == nil:
		return p.reply(r, ""), nil
	case errors.As(err, &dead) && dead.Exited && r != nil:
		return p.reply(r, fmt.Sprintf(exitNote, restart)), nil
	case errors.Is(err, jupyter.ErrDead):
		return nil, fmt.Errorf("%w, as the tool %s does", err, restart)
	case !errors.Is(err, errCellTime) || r == nil:
		return nil, err
	case errors.Is(err, jupyter.ErrStuck):
		return p.reply(r, fmt.Sprintf(stuckNote, limit, restart)), nil
	case errors.Is(err, jupyter.ErrQueued):
		return p.reply(r, fmt.Sprintf(queuedNote, limit, restart)), nil
	}
	return p.reply(r, fmt.Sprintf("[interrupted after %v]\n", limit)), nil
}

func (p *python) reply(r *jupyter.Result, note string) *Reply {
	var b strings.Builder
	write := func(before, text string) {
		if text = terminal.Text([]byte(text)); text != "" {
			b.WriteString(before + ended(text))
		}
	}
	write("", r.Stdout)
	write("[stderr]\n", r.Stderr)
	reply := &Reply{}
	for _, o := range r.Outputs {
		for _, mime := range images {
			if data, ok := o.Data[mime]; ok {
				write("", reply.show(data))
				break
			}
		}
		write("", o.Text())
	}
	if r.Error != nil {
		write("", cmp.Or(r.Error.Traceback, r.Error.Error()))
	}
	if r.Omitted > 0 {
		note += fmt.Sprintf("[%d bytes are left out of the middle]\n", r.Omitted)
	}
	reply.Text = cut(p.options.budget-len(note), b.String()) + note
	return reply
}

func (p *python) restart(ctx context.Context, _ noArgs) (*Reply, error) {
	client, err := p.client.Get(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Restart(ctx); err != nil {
		return nil, err
	}
	return &Reply{Text: "[a fresh kernel]\n"}, nil
}
