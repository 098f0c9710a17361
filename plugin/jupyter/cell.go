package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/printable"
)

// outputsMax is how many bytes of Outputs a Result keeps.
const outputsMax = 8 << 20

// valuesMax bounds the memory for the values of a message, beside its text.
const valuesMax = 8 << 20

// The contents of messages, as far as they matter.
type (
	displayContent struct {
		Data      map[string]json.RawMessage `json:"data"`
		Transient struct {
			ID string `json:"display_id"`
		} `json:"transient"`
	}
	replyContent struct {
		Status  string `json:"status"`
		Count   int    `json:"execution_count"`
		Payload []struct {
			Source string                     `json:"source"`
			Data   map[string]json.RawMessage `json:"data"`
			Keep   bool                       `json:"keepkernel"`
		} `json:"payload"`
		errorContent
	}
	errorContent struct {
		Name      string   `json:"ename"`
		Value     string   `json:"evalue"`
		Traceback []string `json:"traceback"`
	}
)

// take handles a message about the cell.
func (c *cell) take(ctx context.Context, m *message) error {
	if m.channel == control {
		if m.header.Type == "interrupt_reply" {
			c.interrupts--
		}
		return nil
	}
	if m.parent != c.id {
		switch probed := c.probes[m.parent]; {
		case probed && m.channel == iopub:
			c.idle = true
		case probed && m.channel == shell && !c.replied:
			// An interrupt that hits ipykernel while it shows the traceback of the one before,
			// which takes a second when it does so first on a busy machine, takes the reply with it
			// (dispatch_shell: "KeyboardInterrupt caught in kernel").
			c.replied = true
			c.result.Error = &Error{Name: "KeyboardInterrupt",
				Value: "the kernel has not said more"}
		}
		if m.parent == c.caughtUp {
			return c.answer(ctx)
		}
		return nil
	}
	switch {
	case m.omitted > 0:
		c.result.Omitted += m.omitted
		if m.channel == shell {
			c.replied = true
			c.result.Error = &Error{Name: "unknown", Value: "the kernel's reply is larger than 5 " +
				"MiB"}
		}
		return nil
	case m.channel == stdin && m.header.Type == "input_request":
		return c.hold(m)
	case m.channel == shell:
		return c.reply(m)
	case m.channel == iopub:
		return c.show(m)
	}
	return nil
}

func (m *message) parse(v any) error {
	depth := 0
	if _, ok := v.(*displayContent); ok {
		depth = 2 // what Data has is text here: a plot is a list of many numbers
	}
	return bounded.UnmarshalRaw(m.content, v, "the kernel's "+printable.Text(m.header.Type),
		valuesMax, depth)
}

func (c *cell) reply(m *message) error {
	var reply replyContent
	if err := m.parse(&reply); err != nil {
		return err
	}
	c.replied = true
	c.result.ExecutionCount = reply.Count
	switch reply.Status {
	case "ok":
	case "error":
		c.result.Error = reply.errorContent.error()
	default:
		c.result.Error = &Error{Name: reply.Status, Value: "the kernel has not run the cell to " +
			"its end"}
	}
	for _, p := range reply.Payload {
		switch p.Source {
		case "ask_exit": // exit() and quit(): the kernel ends in a moment
			c.exits = c.exits || !p.Keep
		case "page": // "name?" has its answer here
			o := newOutput(p.Data)
			if text, ok := o.Data[TextPlain]; ok {
				o.Data[TextPlain] = []byte(plain(string(text)))
			}
			c.add(o)
		}
	}
	return nil
}

func (e errorContent) error() *Error {
	return &Error{Name: e.Name, Value: e.Value, Traceback: plain(strings.Join(e.Traceback, "\n"))}
}

// show handles a message of the cell's on iopub.
func (c *cell) show(m *message) error {
	switch m.header.Type {
	case "status":
		var status struct {
			State string `json:"execution_state"`
		}
		err := m.parse(&status)
		c.idle = c.idle || status.State == "idle"
		return err
	case "execute_input":
		if !c.hasBegun() {
			close(c.began)
		}
	case "stream":
		var text struct{ Name, Text string }
		if err := m.parse(&text); err != nil {
			return err
		}
		c.clearIfDue()
		if text.Name == "stderr" {
			c.stderr.WriteString(text.Text)
			c.tell(Event{Stderr: text.Text})
		} else {
			c.stdout.WriteString(text.Text)
			c.tell(Event{Stdout: text.Text})
		}
	case "display_data", "execute_result", "update_display_data":
		var display displayContent
		if err := m.parse(&display); err != nil {
			return err
		}
		m.content = nil // display has it, and is decoded now: each has some MiB
		c.clearIfDue()
		o := newOutput(display.Data)
		o.Value, o.display = m.header.Type == "execute_result", display.Transient.ID
		if m.header.Type == "update_display_data" {
			c.update(o)
		} else {
			c.add(o)
		}
	case "clear_output":
		var how struct{ Wait bool }
		if err := m.parse(&how); err != nil {
			return err
		}
		if c.clear = true; !how.Wait {
			c.clearIfDue()
		}
	case "error":
		var raised errorContent
		if err := m.parse(&raised); err != nil {
			return err
		}
		c.clearIfDue()
		c.tell(Event{Error: raised.error()})
	}
	return nil
}

// tell calls Stream's function. One that panics is not called again.
func (c *cell) tell(e Event) {
	if c.options.stream == nil {
		return
	}
	c.failed = guard.Call("Stream's function", func() error {
		c.options.stream(e)
		return nil
	})
	if c.failed != nil {
		c.options.stream = nil
	}
}

func (c *cell) clearIfDue() {
	if !c.clear {
		return
	}
	c.clear = false
	c.stdout.Reset()
	c.stderr.Reset()
	c.result.Outputs, c.shown = nil, 0
	c.tell(Event{Clear: true})
}

// add adds an output, if there is room for it.
func (c *cell) add(o *Output) {
	if size := o.size(); c.shown+size > outputsMax {
		c.result.Omitted += size
	} else {
		c.shown += size
		c.result.Outputs = append(c.result.Outputs, *o)
	}
	c.tell(Event{Output: o})
}

// update replaces the outputs of the same display.
func (c *cell) update(o *Output) {
	for i := range c.result.Outputs {
		old := &c.result.Outputs[i]
		if more := o.size() - old.size(); old.display == o.display && o.display != "" &&
			c.shown+more <= outputsMax {
			c.shown += more
			old.Data = o.Data
		}
	}
	c.tell(Event{Output: o, Update: true})
}

// hold keeps a question until all output before it has arrived, which comes by another connection.
// The kernel publishes in order: so a request is sent now, on control, where it does not wait for
// the cell; when iopub has a message about that, the output is complete.
func (c *cell) hold(m *message) (err error) {
	if c.question != nil {
		return errors.New("the kernel asks, and waits for no answer")
	}
	c.question = m
	c.caughtUp, err = c.conn.also(c.r, control, "kernel_info_request", struct{}{})
	return err
}

// answer has the caller's InputFunc answer the question, if the cell still asks.
func (c *cell) answer(ctx context.Context) error {
	m := c.question
	if c.question, c.caughtUp = nil, ""; m == nil {
		return nil
	}
	var ask struct {
		Prompt   string
		Password bool
	}
	if err := m.parse(&ask); err != nil {
		return err
	}
	if c.stopping || c.options.input == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.conn.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	var text string
	err := guard.Call("Input's function", func() (err error) {
		text, err = c.options.input(ctx, ask.Prompt, ask.Password)
		return err
	})
	cancel()
	<-watched
	if err != nil {
		return err
	}
	return c.conn.answer(m, "input_reply", map[string]string{"value": text})
}

// finish returns the Result, as far as the cell has got.
func (c *cell) finish() *Result {
	r := &c.result
	var stdout, stderr int64
	r.Stdout, stdout = c.stdout.Text()
	r.Stderr, stderr = c.stderr.Text()
	c.conn.mu.Lock()
	r.Omitted += stdout + stderr + c.r.omitted
	c.conn.mu.Unlock()
	if i := slices.IndexFunc(r.Outputs, func(o Output) bool { return o.Value }); i >= 0 {
		r.Text = r.Outputs[i].Text()
	}
	return r
}

// colours are control sequences, as ECMA-48 has them.
var colours = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// plain returns text without IPython's colours.
func plain(text string) string { return colours.ReplaceAllString(text, "") }
