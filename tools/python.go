package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
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
// execute_cli in the box uses too. If a cell runs longer than Config.MaxWait, or longer than the
// model allows, it is interrupted. Figures are in a Reply's Images.
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
	set := &Set{closers: []func() error{once("the kernel's Close", p.client.Close)}, tools: []Tool{
		must(newTool("python", pythonText, p.run, boundSeconds)),
		must(newTool("python_restart", pythonRestartText, p.restart)),
	}}
	return set.withEgress(c, "python")
}

const (
	pythonText = "Runs Python code in a notebook's kernel, which keeps what earlier calls have " +
		"defined. The reply is what the code prints, the value of its last expression, and the " +
		"traceback if it raises an exception. Figures are shown. The code may use magics and " +
		"await. input() raises an error, and exit() ends the kernel."
	pythonRestartText = "Starts a fresh kernel. Everything that was defined is gone."
)

type python struct {
	config Config
	client *lazy.Value[*jupyter.Client]
}

type pythonArgs struct {
	Code    string  `json:"code" jsonschema:"the cell"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"how long it may run. Default: a minute"`
}

// The notes after a cell's output.
const (
	exitNote        = "[the code has ended the kernel: use %s to start a fresh one]\n"
	interruptedNote = "[interrupted after %v: give more seconds if the code needs them]\n"
	stuckNote       = "[still running: an interrupt after %v did not help; use %s to end it]\n"
	queuedNote      = "[not run: the kernel has run another cell for %v; if that cell is stuck, " +
		"use %s]\n"
)

// imageTypes are the MIME types of pictures that models can see.
var imageTypes = []string{jupyter.ImagePNG, jupyter.ImageJPEG, jupyter.ImageGIF, "image/webp"}

// objectName matches the text of a picture that says nothing but what the object is called in
// Python.
var objectName = regexp.MustCompile(`^<[\w.]+ .*>\s*$`)

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
	return p.reply(r, fmt.Sprintf(interruptedNote, limit)), nil
}

// reply returns what a model gets for a cell's result, and then the note.
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
		isPicture := false
		for _, mime := range imageTypes {
			if data, ok := o.Data[mime]; ok {
				write("", reply.show(data))
				isPicture = true
				break
			}
		}
		if text := o.Text(); !isPicture || !objectName.MatchString(text) {
			write("", text)
		}
	}
	if r.Error != nil {
		write("", cmp.Or(r.Error.Traceback, r.Error.Error()))
	}
	if r.Omitted > 0 {
		note += fmt.Sprintf("[%d bytes in the middle are left out]\n", r.Omitted)
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
