package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
)

// validateEgress returns an error if the limits say wrongly what the box may reach.
func (l Limits) validateEgress() error {
	for i, text := range l.Egress {
		if _, err := egress.ParseRule(text); err != nil {
			return &FieldError{fmt.Sprintf("limits.egress[%d]", i), err}
		}
	}
	if len(l.Egress) > 0 && l.Network != "" && l.Network != string(sandbox.NetworkNone) {
		return fieldError("limits.network", "%q: limits.egress needs a box without a network: "+
			"write none, or leave it out", l.Network)
	}
	return nil
}

// RefusedCount is the name in Result.Counts of how many requests and connections were refused, of
// tasks with Limits.Egress.
const RefusedCount = "egress refused"

const (
	// egressFile is the file in Result.Dir with what the task's boxes have asked of the network.
	egressFile = "egress.jsonl"
	egressMax  = 16 << 20 // bytes
	// mostRefused is how many refused requests the log of a sample has.
	mostRefused = 100
)

// An egressLog is told what the boxes of a sample ask of the network. A nil egressLog is none.
type egressLog struct {
	log     io.Writer
	file    io.Closer
	line    func(egress.Event) // writes to file
	told    atomic.Int64       // refusals in log
	refused atomic.Int64       // since the attempt began
}

// newEgressLog creates the file of a sample if its task says what its boxes may reach. Else it
// removes what an earlier run has left.
func newEgressLog(t *Task, dir string, log io.Writer) (*egressLog, error) {
	name := filepath.Join(dir, egressFile)
	if len(t.Limits.Egress) == 0 {
		_ = os.Remove(name)
		return nil, nil
	}
	f, err := createBounded(name, egressMax)
	if err != nil {
		return nil, err
	}
	return &egressLog{log: log, file: f, line: egress.JSONL(f)}, nil
}

func (l *egressLog) add(e egress.Event) {
	l.line(e)
	if e.Denied == "" {
		return
	}
	l.refused.Add(1)
	if l.told.Add(1) <= mostRefused {
		fmt.Fprintf(l.log, "--- egress: %s\n", e.Denied)
	}
}

// attemptBegins says that what was refused so far is not of the attempt.
func (l *egressLog) attemptBegins() {
	if l != nil {
		l.refused.Store(0)
	}
}

// count adds what was refused to counts.
func (l *egressLog) count(counts map[string]float64) map[string]float64 {
	if l == nil {
		return counts
	}
	if counts == nil {
		counts = map[string]float64{}
	}
	counts[RefusedCount] = float64(l.refused.Load())
	return counts
}

func (l *egressLog) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// An outlet is a box whose way out is closed with it.
type outlet struct {
	sandbox.Sandbox
	gate *egress.Gate
}

// Unwrap lets sandbox.As find the box.
func (o *outlet) Unwrap() sandbox.Sandbox { return o.Sandbox }

// Close implements sandbox.Sandbox. A box that is closed has nothing for the gate to undo.
func (o *outlet) Close() error { return errors.Join(o.Sandbox.Close(), o.gate.Close()) }

// withEgress makes the way out of a new box, if the task has one. If that fails, the box is closed.
func (r *runner) withEgress(ctx context.Context, t *Task, box sandbox.Sandbox,
	log *egressLog) (sandbox.Sandbox, error) {
	if log == nil {
		return box, nil
	}
	c := egress.Config{Allow: egress.Rules(t.Limits.Egress...), Log: log.add}
	var gate *egress.Gate
	err := guard.Call("Config.Egress", func() error {
		if r.cfg.Egress == nil {
			return nil
		}
		return r.cfg.Egress(*t, &c)
	})
	if err == nil {
		gate, err = egress.New(c)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("Config.Egress: %w", err), box.Close())
	}
	if _, err := gate.Attach(ctx, box); err != nil {
		return nil, errors.Join(err, gate.Close(), box.Close())
	}
	return &outlet{box, gate}, nil
}
