package pytool

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// script starts the program that calls the function. $1 is the nonce. $2 is the key of the virtual
// environment; if it is empty, the box's Python is used. The frames "p" and "v" say that the plugin
// or the virtual environment is missing.
const script = `
[ "$SANDSHELL_PYTOOL" ] && [ -e "$SANDSHELL_PYTOOL/run.py" ] || { printf '%sp\000\000\000\000' "$1"; exit 1; }
p=$SANDSHELL_PYTOOL_PYTHON
if [ "$2" ]; then
  v=$SANDSHELL_PYTOOL/venvs/$SANDSHELL_PYTOOL_VERSION-$2
  p=$v/bin/python
  [ -e "$v/ready" ] && [ -x "$p" ] || { printf '%sv\000\000\000\000' "$1"; exit 1; }
  export VIRTUAL_ENV="$v" PATH="$v/bin:$PATH"
fi
exec "$p" -B "$SANDSHELL_PYTOOL/run.py" "$1"
`

var (
	errNoPlugin = errors.New("the plugin pytool is not installed: " +
		"InitPlugins(ctx, pytool.Plugin()) first")
	errNoVenv = errors.New("no virtual environment")
)

// An unstartedError says that the call ended before the function was called.
type unstartedError struct{ error }

func (e unstartedError) Unwrap() error { return e.error }

// Call calls the function in the box, which must have Plugin. The package's doc lists the errors.
// Call reports mistakes in the call (no Function, Args that are no object) before anything runs.
func (t *Tool) Call(ctx context.Context, box sandbox.Sandbox, c Call) (*Result, error) {
	request, err := t.encodeRequest(c)
	if err == nil && box == nil {
		err = errors.New("the box is nil: make a box first")
	}
	if err != nil {
		return nil, fmt.Errorf("call a Python function: %w", err)
	}
	res, err := t.callOnce(ctx, box, c, request)
	if errors.Is(err, errNoVenv) {
		if err := t.Prepare(ctx, box); err != nil {
			return nil, unstartedError{err}
		}
		res, err = t.callOnce(ctx, box, c, request)
	}
	return res, err
}

// callOnce calls the function. If the virtual environment is missing, the error is errNoVenv.
func (t *Tool) callOnce(ctx context.Context, box sandbox.Sandbox, c Call,
	request []byte) (*Result, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, sandbox.ErrTimeout)
		defer cancel()
	}
	limit := c.MaxOutput
	if limit == 0 {
		limit = maxOutput
	}
	stdout := newCapture(limit, guard.Writer("Call.Stdout", c.Stdout))
	stderr := newCapture(limit, guard.Writer("Call.Stderr", c.Stderr))
	// python gets what Python prints before the function is loaded and after its end.
	python := newCapture(maxOutput, nil)
	d := &decoder{nonce: []byte(rand.Text()), stdout: stdout, stderr: stderr,
		answers: map[byte][]byte{}}
	input := &input{r: bytes.NewReader(request)}
	began := time.Now()
	ctx, d.stop = ctxerr.WithCancel(ctx)
	defer d.stop(nil)
	code, err := box.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", script, "pytool", string(d.nonce), t.key()},
		Dir:  c.Dir, Env: environ.Merge(t.Env, c.Env), Stdin: input, Stdout: d, Stderr: python,
	})
	if _, ok := d.answers['p']; ok {
		return nil, fmt.Errorf("call %s: %w", t.Function, errNoPlugin)
	}
	if _, ok := d.answers['v']; ok {
		return nil, errNoVenv
	}
	if text, _ := python.text(); text != "" {
		stderr.Write([]byte(text))
	}
	res := &Result{Duration: time.Since(began)}
	res.Stdout, res.StdoutOmitted = stdout.text()
	res.Stderr, res.StderrOmitted = stderr.text()
	status, ended := d.answers['x']
	answerErr := t.parseAnswer(d.answers['r'], res)
	switch {
	case ended && len(d.answers['r']) > 0:
		return res, errors.Join(answerErr, stdout.teeErr(), stderr.teeErr())
	case ended:
		n, err := strconv.Atoi(string(status))
		if err != nil {
			return res, fmt.Errorf("call %s: parse the exit status: %w", t.Function, err)
		}
		return res, exitError(t.Function, n)
	case err != nil && ctx.Err() != nil:
		if err = ctxerr.Of(ctx); errors.Is(err, sandbox.ErrTimeout) && c.Timeout > 0 {
			return res, fmt.Errorf("call %s: not done after %v: %w", t.Function, c.Timeout, err)
		}
		return res, fmt.Errorf("call %s: %w", t.Function, err)
	case err != nil:
		err = fmt.Errorf("call %s: %w", t.Function, err)
		if !input.read.Load() {
			return nil, unstartedError{err}
		}
		return res, err
	case !d.begun:
		return nil, fmt.Errorf("call %s: Python did not start: exit status %d: %s", t.Function,
			code, lastlines.Of(res.Stderr))
	}
	// The program was killed, and could not say how the function ended.
	return res, exitError(t.Function, min(code, 128-code))
}

// parseAnswer parses the program's answer. It writes the function's value and state to res. If the
// function raised, the error is its exception.
func (t *Tool) parseAnswer(text []byte, res *Result) error {
	if len(text) == 0 {
		return nil
	}
	var a struct {
		Value, State json.RawMessage
		Exception    *struct{ Stage, Type, Module, Message, Traceback string }
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("call %s: parse the result: %w", t.Function, err)
	}
	if e := a.Exception; e != nil {
		return &Exception{t.Function, Stage(e.Stage), e.Type, e.Module, e.Message, e.Traceback}
	}
	res.Value, res.State = a.Value, a.State
	return nil
}

// exitError returns an ExitError with an exit status, or with a signal if status is negative.
func exitError(function string, status int) error {
	if status < 0 {
		return &ExitError{function, 128 - status, syscall.Signal(-status)}
	}
	return &ExitError{function, status, 0}
}

// An input is a reader that knows whether it has been read from.
type input struct {
	r    *bytes.Reader
	read atomic.Bool
}

func (i *input) Read(p []byte) (int, error) {
	i.read.Store(true)
	return i.r.Read(p)
}
