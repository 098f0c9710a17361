package e2b

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/plugin/jupyter"
)

// prepareCode prepares a kernel for a request's code.
//
//go:embed prepare.py
var prepareCode string

// preparation returns the cell that prepares a kernel for code with these variables. It leaves no
// name in the user's namespace. A string of JSON is one of Python.
func preparation(env map[string]string) (string, error) {
	if env == nil {
		env = map[string]string{}
	}
	values, err := json.Marshal(env)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(string(values))
	if err != nil {
		return "", err
	}
	code, err := json.Marshal(prepareCode)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("__import__('builtins').exec(%s, {'env': __import__('json').loads(%s)})",
		code, text), nil
}

// resetLimit is how long the environment may take to be what it was.
const resetLimit = 10 * time.Second

// execute runs code, and answers with what the code prints and shows, a line of JSON for each.
func (i *interpreter) execute() error {
	// Whoever may reach a port may not run code for that.
	if !same(i.r.Header.Get(tokenHeader), i.token(i.id)) {
		return statusf(http.StatusUnauthorized, "the access token is missing or wrong: send the "+
			"box's as %s", tokenHeader)
	}
	var body struct {
		Code     string            `json:"code"`
		Context  string            `json:"context_id"`
		Language string            `json:"language"`
		Env      map[string]string `json:"env_vars"`
	}
	if err := i.body(&body); err != nil {
		return err
	}
	if body.Context != "" && body.Language != "" {
		return statusf(http.StatusBadRequest, "Only one of context_id or language can be provided")
	}
	if err := checkLanguage(body.Language); err != nil {
		return err
	}
	for name, value := range body.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return statusf(http.StatusBadRequest, "env_vars: %q cannot be set: a name has no "+
				"\"=\", and neither it nor its value a zero byte", name)
		}
	}
	where, err := i.defaultContext()
	if err == nil && body.Context != "" {
		where, err = i.find(body.Context)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(i.r.Context())
	defer cancel(nil)
	defer i.state.streams.add(func() { cancel(errBoxGone) })()
	done, err := i.turn(ctx, where.ID)
	if err != nil {
		return err
	}
	defer done()
	client, err := i.connect(ctx, where)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := prepare(ctx, client, body.Env); err != nil {
		return err
	}
	i.logs.add(i.id, "info", "code started", "context", where.ID)
	out := i.answer(ctx)
	result, err := client.Run(ctx, body.Code, jupyter.Stream(out.event))
	if len(body.Env) > 0 {
		reset, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetLimit)
		_ = prepare(reset, client, nil) // the next request does it too
		cancel()
	}
	out.end(result, err)
	return nil
}

// prepare sets the environment of a kernel for the next cell.
func prepare(ctx context.Context, client *jupyter.Client, env map[string]string) error {
	code, err := preparation(env)
	if err != nil {
		return err
	}
	result, err := client.Run(ctx, code, jupyter.Silent())
	if err == nil && result.Error != nil {
		err = statusf(http.StatusInternalServerError, "the kernel cannot be prepared: %v: "+
			"code has changed it: restart the context", result.Error)
	}
	return err
}

// A line is one of an execution's answer. E2B's clients ignore "keepalive".
type line struct {
	Type string     `json:"type"`
	Text *string    `json:"text,omitempty"`
	Time *time.Time `json:"timestamp,omitempty"`

	Name      *string `json:"name,omitempty"`
	Value     *string `json:"value,omitempty"`
	Traceback *string `json:"traceback,omitempty"`

	Count *int `json:"execution_count,omitempty"`
}

// keepAlivePause is how long nothing is written before a line shows that the execution goes on: a
// client that is gone without a word is found by writing.
const keepAlivePause = 5 * time.Second

// An execution writes the answer to a request that runs code.
type execution struct {
	i      *interpreter
	ctx    context.Context
	stop   func() bool
	ended  chan struct{}
	pulse  sync.WaitGroup
	raised atomic.Bool // an error was written

	mu     sync.Mutex
	closed bool
}

// answer begins the answer. The caller calls end.
func (i *interpreter) answer(ctx context.Context) *execution {
	h := i.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // nginx
	x := &execution{i: i, ctx: ctx, ended: make(chan struct{})}
	// A client that does not read must not hold up the end.
	x.stop = context.AfterFunc(ctx, func() {
		_ = http.NewResponseController(i.w).SetWriteDeadline(time.Now())
	})
	i.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(i.w).Flush()
	x.pulse.Go(func() {
		t := time.NewTicker(keepAlivePause)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				x.write(&line{Type: "keepalive"})
			case <-x.ended:
				return
			}
		}
	})
	return x
}

// write writes a line. If the client is gone, the request's context ends.
func (x *execution) write(v any) {
	text, err := json.Marshal(v)
	if err != nil { // a value that is no JSON
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	_, _ = x.i.w.Write(append(text, '\n'))
	_ = http.NewResponseController(x.i.w).Flush()
}

// event writes what a cell prints or shows.
func (x *execution) event(e jupyter.Event) {
	now := time.Now().UTC()
	switch {
	case e.Stdout != "":
		x.write(&line{Type: "stdout", Text: &e.Stdout, Time: &now})
	case e.Stderr != "":
		x.write(&line{Type: "stderr", Text: &e.Stderr, Time: &now})
	case e.Output != nil && !e.Update: // E2B has no updates
		x.write(shown(e.Output))
	case e.Error != nil:
		x.raise(e.Error)
	}
}

func (x *execution) raise(e *jupyter.Error) {
	if x.raised.CompareAndSwap(false, true) {
		x.write(&line{Type: "error", Name: &e.Name, Value: &e.Value, Traceback: &e.Traceback})
	}
}

// end ends the answer. If the client is gone or the box is, it cuts the connection.
func (x *execution) end(result *jupyter.Result, err error) {
	close(x.ended)
	x.pulse.Wait()
	if result != nil && result.Error != nil {
		x.raise(result.Error)
	}
	if err != nil && x.ctx.Err() == nil && !isGone(err) {
		name := "UnexpectedEndOfExecution"
		if dead := (*jupyter.DeadError)(nil); errors.As(err, &dead) && dead.Replaced {
			name = "ContextRestarting"
		}
		x.raise(&jupyter.Error{Name: name, Value: err.Error()})
		if !errors.Is(err, jupyter.ErrDead) {
			x.i.config.Logger.Error("e2b: the code interpreter has failed", "box", x.i.id,
				"error", err)
		}
		err = nil
	}
	if err == nil {
		if result != nil && result.ExecutionCount > 0 {
			x.write(&line{Type: "number_of_executions", Count: &result.ExecutionCount})
		}
		x.write(&line{Type: "end_of_execution"})
	}
	x.mu.Lock()
	x.closed = true // a call of event may still be under way: see jupyter.Stream
	x.mu.Unlock()
	x.stop()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// forms are the names of MIME types in a result of E2B's.
var forms = map[string]string{
	jupyter.TextPlain: "text", jupyter.TextHTML: "html", jupyter.TextMarkdown: "markdown",
	jupyter.ImageSVG: "svg", jupyter.ImagePNG: "png", jupyter.ImageJPEG: "jpeg",
	"application/pdf": "pdf", jupyter.TextLaTeX: "latex", jupyter.JSON: "json",
	"application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart",
}

// shown returns the line of an output: its forms, and those that E2B has no name for as "extra".
func shown(o *jupyter.Output) map[string]any {
	result, extra := map[string]any{}, map[string]any{}
	for mime, data := range o.Data {
		var value any = string(data)
		switch kind, _, _ := strings.Cut(mime, "/"); {
		case mime == jupyter.JSON || kind == "e2b" || strings.HasSuffix(mime, "+json"):
			value = json.RawMessage(data)
		case mime == jupyter.TextPlain:
			value = unquoted(string(data))
		case mime != jupyter.ImageSVG && (kind == "image" || kind == "audio" || kind == "video") ||
			mime == "application/pdf":
			value = base64.StdEncoding.EncodeToString(data)
		}
		if name, ok := forms[mime]; ok {
			result[name] = value
		} else {
			extra[mime] = value
		}
	}
	result["type"], result["is_main_result"], result["extra"] = "result", o.Value, extra
	return result
}

// unquoted returns the text of a string without the quotes of its representation, as E2B does.
func unquoted(text string) string {
	for _, quote := range []string{"'", `"`} {
		if len(text) > 1 && strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) {
			return text[1 : len(text)-1]
		}
	}
	return text
}
