package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/lazy"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
)

// Python returns the tools of an IPython kernel in a box that has the plugin jupyter: python and python_restart. The kernel starts with the first cell, and is
// the box's default one, which execute_cli in the box uses too. A cell that runs longer than Yield, or than the model says, is interrupted. Figures are a
// Reply's Images.
func Python(box sandbox.Sandbox, opts ...Option) *Set {
	p := &python{options: newOptions(opts), client: lazy.New(func(ctx context.Context) (*jupyter.Client, error) { return jupyter.Connect(ctx, box) })}
	return &Set{closers: []func() error{p.client.Close}, tools: []Tool{
		must(newTool("python", pythonText, p.run, orderly)),
		must(newTool("python_restart", pythonRestartText, p.restart)),
	}}
}

const (
	pythonText = `Runs Python in a notebook's kernel: what earlier calls have defined is still there. The reply is what the code prints, the value of its last expression, and the
traceback if it raises. Figures are shown. Code may use magics and await; input() raises an error.`
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

var errCellTime = errors.New("the cell's time is over")

func (p *python) run(ctx context.Context, a pythonArgs) (*Reply, error) {
	client, err := p.client.Get(ctx)
	if err != nil {
		return nil, err
	}
	limit := p.options.limit(a.Seconds)
	bounded, done := ctxerr.WithLimit(ctx, limit, errCellTime)
	defer done()
	opts := []jupyter.RunOption{jupyter.MaxOutput(p.options.budget)}
	if w := outputOf(ctx); w != nil {
		opts = append(opts, jupyter.Stream(func(e jupyter.Event) {
			_, _ = w.Write([]byte(e.Stdout + e.Stderr)) // as with Tee, its error is not the cell's
		}))
	}
	r, err := client.Run(bounded, a.Code, opts...)
	switch {
	case errors.Is(err, errCellTime) && r != nil:
		return p.reply(r, fmt.Sprintf("[interrupted after %v]\n", limit.Round(time.Millisecond))), nil
	case err != nil:
		return nil, err
	}
	return p.reply(r, ""), nil
}

func (p *python) reply(r *jupyter.Result, note string) *Reply {
	var b strings.Builder
	b.WriteString(ended(r.Stdout))
	if r.Stderr != "" {
		b.WriteString("[stderr]\n" + ended(r.Stderr))
	}
	reply := &Reply{}
	for _, o := range r.Outputs {
		if data, ok := o.Data[jupyter.ImagePNG]; ok {
			reply.Images = append(reply.Images, Image{MIME: jupyter.ImagePNG, Data: data})
		}
		b.WriteString(ended(o.Text()))
	}
	if r.Error != nil {
		b.WriteString(ended(r.Error.Traceback))
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
