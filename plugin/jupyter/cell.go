package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
)

// outputsMax is how many bytes of Outputs a Result keeps.
const outputsMax = 8 << 20

// valuesMax is how much memory the values of a message may take, beside its text.
const valuesMax = 8 << 20

// The contents of messages, as far as this package uses them.
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

// handle handles a message about the cell.
func (c *cell) handle(ctx context.Context, m *message) error {
	if m.channel == control {
		if m.header.Type == "interrupt_reply" {
			c.unacknowledged--
		}
		return nil
	}
	if m.parent != c.id {
		switch probed := c.probes[m.parent]; {
		case probed && m.channel == iopub:
			c.idle = true
		case probed && m.channel == shell && !c.replied:
			// An interrupt that hits ipykernel while it formats the traceback of an earlier one
			// also ends the sending of the reply (dispatch_shell: "KeyboardInterrupt caught in
			// kernel"). The first traceback takes a second on a busy machine.
			c.replied = true
			c.result.Error = &Error{Name: "KeyboardInterrupt",
				Value: "the kernel has sent no reply"}
		}
		if m.parent == c.questionProbe {
			return c.answerQuestion(ctx)
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
		return c.deferQuestion(m)
	case m.channel == shell:
		return c.handleReply(m)
	case m.channel == iopub:
		return c.handleOutput(m)
	}
	return nil
}

// parse parses the content of a message into v.
func (m *message) parse(v any) error {
	depth := 0
	if _, ok := v.(*displayContent); ok {
		depth = 2 // the values of Data stay text: a plot is a list of many numbers
	}
	return bounded.UnmarshalRaw(m.content, v, "the kernel's "+printable.Text(m.header.Type),
		valuesMax, depth)
}

// handleReply handles the kernel's reply: the cell has ended.
func (c *cell) handleReply(m *message) error {
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
		case "ask_exit": // exit() or quit() was called: the kernel ends soon
			c.exiting = c.exiting || !p.Keep
		case "page": // the answer to "name?"
			o := newOutput(p.Data)
			if text, ok := o.Data[TextPlain]; ok {
				o.Data[TextPlain] = []byte(withoutColours(string(text)))
			}
			c.addOutput(o)
		}
	}
	return nil
}

func (e errorContent) error() *Error {
	return &Error{Name: e.Name, Value: e.Value,
		Traceback: withoutColours(strings.Join(e.Traceback, "\n"))}
}

// handleOutput handles a message on iopub.
func (c *cell) handleOutput(m *message) error {
	switch m.header.Type {
	case "status":
		var status struct {
			State string `json:"execution_state"`
		}
		err := m.parse(&status)
		c.idle = c.idle || status.State == "idle"
		if c.silent && status.State == "busy" && !c.hasBegun() { // it has no execute_input
			close(c.began)
		}
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
		c.applyClear()
		if text.Name == "stderr" {
			c.stderr.WriteString(text.Text)
			c.emit(Event{Stderr: text.Text})
		} else {
			c.stdout.WriteString(text.Text)
			c.emit(Event{Stdout: text.Text})
		}
	case "display_data", "execute_result", "update_display_data":
		var display displayContent
		if err := m.parse(&display); err != nil {
			return err
		}
		m.content = nil // display has the same bytes, up to 5 MiB
		c.applyClear()
		o := newOutput(display.Data)
		o.Value, o.display = m.header.Type == "execute_result", display.Transient.ID
		if m.header.Type == "update_display_data" {
			c.updateOutputs(o)
		} else {
			c.addOutput(o)
		}
	case "clear_output":
		var how struct{ Wait bool }
		if err := m.parse(&how); err != nil {
			return err
		}
		if c.clearPending = true; !how.Wait {
			c.applyClear()
		}
	case "error":
		var raised errorContent
		if err := m.parse(&raised); err != nil {
			return err
		}
		c.applyClear()
		c.emit(Event{Error: raised.error()})
	}
	return nil
}

// emit calls Stream's function. After a panic, or if it blocks, it is not called again.
func (c *cell) emit(e Event) {
	if c.stream == nil {
		return
	}
	if c.streamErr = c.stream(e); c.streamErr != nil {
		c.stream = nil
	}
}

// applyClear clears the output if clear_output(wait=True) was called before.
func (c *cell) applyClear() {
	if !c.clearPending {
		return
	}
	c.clearPending = false
	c.stdout.Reset()
	c.stderr.Reset()
	c.result.Outputs, c.outputSize = nil, 0
	c.emit(Event{Clear: true})
}

// addOutput adds an output to the Result if it has room.
func (c *cell) addOutput(o *Output) {
	if size := o.size(); c.outputSize+size > outputsMax {
		c.result.Omitted += size
	} else {
		c.outputSize += size
		c.result.Outputs = append(c.result.Outputs, *o)
	}
	c.emit(Event{Output: o})
}

// updateOutputs replaces the outputs of the same display.
func (c *cell) updateOutputs(o *Output) {
	for i := range c.result.Outputs {
		old := &c.result.Outputs[i]
		if more := o.size() - old.size(); old.display == o.display && o.display != "" &&
			c.outputSize+more <= outputsMax {
			c.outputSize += more
			old.Data = o.Data
		}
	}
	c.emit(Event{Output: o, Update: true})
}

// deferQuestion keeps a question until all output before it has arrived. The two come on different
// connections. The kernel publishes its output in order, so deferQuestion sends a request on
// control, where it does not wait for the cell. When iopub has a message about that request, the
// output before it has arrived.
func (c *cell) deferQuestion(m *message) (err error) {
	if c.question != nil {
		return errors.New("the kernel asks a second question before the first is answered")
	}
	c.question = m
	c.questionProbe, err = c.conn.sendFollowUp(c.request, control, "kernel_info_request",
		struct{}{})
	return err
}

// answerQuestion has the caller's InputFunc answer the deferred question, if there is one.
func (c *cell) answerQuestion(ctx context.Context) error {
	m := c.question
	if c.question, c.questionProbe = nil, ""; m == nil {
		return nil
	}
	var ask struct {
		Prompt   string
		Password bool
	}
	if err := m.parse(&ask); err != nil {
		return err
	}
	if c.stopping || c.input == nil {
		return nil
	}
	inputCtx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.conn.gone:
			cancel(c.conn.goneErr())
		case <-inputCtx.Done():
		}
	}()
	var text string
	err := callback(inputCtx, "Input's function", func() (err error) {
		text, err = c.input(inputCtx, ask.Prompt, ask.Password)
		return err
	})
	cancel(nil)
	<-watched
	if err != nil {
		return err
	}
	return c.conn.sendReply(ctx, m, "input_reply", map[string]string{"value": text})
}

// finishResult returns the Result, as far as the cell has come.
func (c *cell) finishResult() *Result {
	r := &c.result
	var stdout, stderr int64
	r.Stdout, stdout = c.stdout.Text()
	r.Stderr, stderr = c.stderr.Text()
	c.conn.mu.Lock()
	r.Omitted += stdout + stderr + c.request.omitted
	c.conn.mu.Unlock()
	if i := slices.IndexFunc(r.Outputs, func(o Output) bool { return o.Value }); i >= 0 {
		r.Text = r.Outputs[i].Text()
	}
	return r
}

// colours matches control sequences, as ECMA-48 defines them.
var colours = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// withoutColours returns text without IPython's colours.
func withoutColours(text string) string { return colours.ReplaceAllString(text, "") }
