package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools/internal/lazy"
)

// Python returns the tools of an IPython kernel in a box that has the plugin jupyter: python and
// python_restart. The first cell starts the kernel. It is the box's default kernel, which
// execute_cli in the box uses too. A cell that runs longer than Config.MaxWait, or longer than the
// model says, is interrupted. Figures are in a Reply's Images.
func Python(box sandbox.Sandbox, c Config) *Set {
	c, err := c.check("Python: the box", box)
	if err != nil {
		return broken(err)
	}
	connect := func(ctx context.Context) (*jupyter.Client, error) {
		client, err := jupyter.Connect(ctx, box, jupyter.Config{})
		if errors.Is(err, jupyter.ErrNotInstalled) {
			err = programError{err}
		}
		return client, err
	}
	p := &python{config: c, client: lazy.New(connect)}
	return &Set{closers: []func() error{once("the kernel's Close", p.client.Close)}, tools: []Tool{
		must(newTool("python", pythonText, p.run, boundSeconds)),
		must(newTool("python_restart", pythonRestartText, p.restart)),
	}}
}

const (
	pythonText = "Runs Python in a notebook's kernel, which keeps what earlier calls have " +
		"defined. The reply is what the code prints, the value of its last expression, and the " +
		"traceback if it raises. Figures are shown. Code may use magics and await. input() " +
		"raises an error, and exit() ends the kernel."
	pythonRestartText = "Starts a fresh kernel. All that was defined is gone."
)

type python struct {
	config Config
	client *lazy.Value[*jupyter.Client]
}

type pythonArgs struct {
	Code    string  `json:"code" jsonschema:"the cell"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"how long it may run. Default: a minute"`
}

// Notes after a cell's output.
const (
	exitNote   = "[the code has ended the kernel, by exit or quit: %s starts a fresh one]\n"
	stuckNote  = "[still running: it was interrupted after %v, and goes on; %s ends it]\n"
	queuedNote = "[not run: for %v the kernel ran another cell; if that is stuck, %s ends it]\n"
)

// imageTypes are the types of pictures that models can see.
var imageTypes = []string{jupyter.ImagePNG, jupyter.ImageJPEG, jupyter.ImageGIF, "image/webp"}

var errCellLimit = errors.New("the cell's time is over")

func (p *python) run(ctx context.Context, a pythonArgs) (*Reply, error) {
	client, err := p.client.Get(ctx)
	if err != nil {
		return nil, err
	}
	limit := p.config.waitFor(a.Seconds).Round(time.Millisecond)
	bounded, done := ctxerr.WithLimit(ctx, limit, errCellLimit)
	defer done()
	var opts []jupyter.RunOption
	if w := outputOf(ctx); w != nil {
		opts = append(opts, jupyter.Stream(func(e jupyter.Event) {
			// As with Tee, an error of w is not the cell's.
			_, _ = w.Write([]byte(e.Stdout + e.Stderr))
		}))
	}
	r, err := client.Run(bounded, a.Code, opts...)
	var dead *jupyter.DeadError
	restart := toolName(ctx, "python_restart")
	switch {
	case err == nil:
		return p.reply(r, ""), nil
	case errors.As(err, &dead) && dead.Exited && r != nil:
		return p.reply(r, fmt.Sprintf(exitNote, restart)), nil
	case errors.Is(err, jupyter.ErrDead):
		return nil, fmt.Errorf("%w: use %s", err, restart)
	case !errors.Is(err, errCellLimit) || r == nil:
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
			b.WriteString(before + endLine(text))
		}
	}
	write("", r.Stdout)
	write("[stderr]\n", r.Stderr)
	reply := &Reply{}
	for _, o := range r.Outputs {
		for _, mime := range imageTypes {
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
	reply.Text = shorten(p.config.MaxReply-len(note), b.String()) + note
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
	return &Reply{Text: "[started a fresh kernel: define again what you need]\n"}, nil
}
