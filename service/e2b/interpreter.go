package e2b

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
)

// The code interpreter is a server in E2B's sandboxes. Here the handler is that server: it runs
// code in kernels of plugin/jupyter. A context is a kernel, and the context's id is the kernel's
// name. So contexts live as long as the box, and all processes of a service see the same ones.

// interpreterPort is the port of E2B's code interpreter.
const interpreterPort = 49999

// maxContexts is how many contexts a box may have. Each is a process.
const maxContexts = 64

// maxCode bounds the body of a request with code, in bytes.
const maxCode = 4 << 20

// listens reports whether something in the box listens at an address.
func listens(ctx context.Context, box sandbox.Sandbox, address string) bool {
	conn, err := box.Dial(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// A codeContext is a context of the code interpreter.
type codeContext struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Dir      string `json:"cwd"` // where the kernel was started
}

const python = "python"

// An interpreter serves a request to a box's code interpreter.
type interpreter struct {
	*handler
	w     http.ResponseWriter
	r     *http.Request
	id    string
	state *state
	box   sandbox.Sandbox
}

// interpret serves a request to the code interpreter of a box whose image has none.
func (h *handler) interpret(w http.ResponseWriter, r *http.Request, id string,
	box sandbox.Sandbox) {
	state := h.states.of(id)
	defer state.release()
	i := &interpreter{handler: h, w: w, r: r, id: id, state: state, box: box}
	m := http.NewServeMux()
	on := func(pattern string, f func(*interpreter) error) {
		m.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
			i.r = r // it has the path's values
			if err := f(i); err != nil {
				i.fail(err)
			}
		})
	}
	on("GET /health", func(i *interpreter) error {
		answerJSON(i.w, http.StatusOK, "OK")
		return nil
	})
	on("POST /execute", (*interpreter).execute)
	on("GET /contexts", (*interpreter).list)
	on("POST /contexts", (*interpreter).create)
	on("POST /contexts/{context}/restart", (*interpreter).restart)
	on("DELETE /contexts/{context}", (*interpreter).remove)
	on("/", func(i *interpreter) error {
		return statusf(http.StatusNotFound, "%s %s: the code interpreter serves /execute and "+
			"/contexts", i.r.Method, i.r.URL.Path)
	})
	m.ServeHTTP(w, r)
}

// fail answers with an error: a text, as E2B's code interpreter does.
func (i *interpreter) fail(err error) {
	var e *statusError
	status := http.StatusInternalServerError
	switch {
	case isGone(err):
		i.failOpen(i.w, i.id, sandbox.ErrLost)
		return
	case errors.As(err, &e):
		status = e.status
	case i.r.Context().Err() != nil:
		return
	default:
		i.config.Logger.Error("e2b: the code interpreter has failed", "box", i.id, "error", err)
	}
	http.Error(i.w, err.Error(), status)
}

// body decodes the body of a request.
func (i *interpreter) body(v any) error {
	control := http.NewResponseController(i.w)
	_ = control.SetReadDeadline(time.Now().Add(requestLimit))
	text, err := bounded.ReadAll(i.r.Body, "the body", maxCode)
	_ = control.SetReadDeadline(time.Time{})
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return statusf(http.StatusBadRequest, "the body: %v", err)
	}
	return nil
}

// checkLanguage refuses what is not Python.
func checkLanguage(language string) error {
	if l := strings.ToLower(strings.TrimSpace(language)); l != "" && l != python {
		return statusf(http.StatusNotImplemented, "language %q is not served here: the code "+
			"interpreter runs Python; run other programs as commands", language)
	}
	return nil
}

// contexts returns the contexts of the box. The default one is always there.
func (i *interpreter) contexts() ([]codeContext, error) {
	var kernels []jupyter.Kernel
	err := i.withPlugin(func() (err error) {
		kernels, err = jupyter.Kernels(i.r.Context(), i.box)
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []codeContext
	for _, k := range kernels {
		all = append(all, codeContext{k.Name, python, k.Dir})
	}
	if !slices.ContainsFunc(kernels, func(k jupyter.Kernel) bool {
		return k.Name == jupyter.DefaultKernel
	}) {
		c, err := i.defaultContext()
		if err != nil {
			return nil, err
		}
		all = append([]codeContext{*c}, all...)
	}
	return all, nil
}

// defaultContext returns the default context as it begins: in the home of the box's user.
func (i *interpreter) defaultContext() (*codeContext, error) {
	own, err := i.state.ownAccount(i.r.Context(), i.box)
	if err != nil {
		return nil, err
	}
	return &codeContext{jupyter.DefaultKernel, python, own.home}, nil
}

// find returns a context.
func (i *interpreter) find(id string) (*codeContext, error) {
	all, err := i.contexts()
	if err != nil {
		return nil, err
	}
	if n := slices.IndexFunc(all, func(c codeContext) bool { return c.ID == id }); n >= 0 {
		return &all[n], nil
	}
	return nil, statusf(http.StatusNotFound, "Context %s not found", id)
}

// withPlugin calls f, which needs the plugin jupyter. If the box lacks the plugin, but has a python
// with IPython's kernel, withPlugin installs the plugin first.
func (i *interpreter) withPlugin(f func() error) error {
	err := f()
	if !errors.Is(err, jupyter.ErrNotInstalled) {
		return err
	}
	const script = `for p in python3 /usr/bin/python3 /usr/local/bin/python3; do
		$p -c 'import IPython, ipykernel, jupyter_client, zmq' 2>/dev/null && exit; done; exit 1`
	code, err := i.box.Run(i.r.Context(), &sandbox.Cmd{Args: []string{"/bin/sh", "-c", script}})
	if err != nil {
		return err
	}
	if code != 0 {
		return statusf(http.StatusNotImplemented, "this sandbox has no code interpreter: nothing "+
			"listens on its port %d, and no python3 in it has ipykernel and jupyter_client: take "+
			"a template whose spec has the plugin jupyter, or whose image has these packages",
			interpreterPort)
	}
	if err := plugin.Install(i.r.Context(), i.box, jupyter.Plugin()); err != nil {
		return err
	}
	return f()
}

// connect connects to the kernel of a context, and starts it if it does not run. The caller closes
// the client.
func (i *interpreter) connect(ctx context.Context, c *codeContext) (client *jupyter.Client,
	err error) {
	err = i.withPlugin(func() (err error) {
		client, err = jupyter.Connect(ctx, i.box, jupyter.Config{Kernel: c.ID, Dir: c.Dir})
		return err
	})
	return client, err
}

// turn waits until no other request runs code in a context. The caller calls done.
func (i *interpreter) turn(ctx context.Context, id string) (done func(), err error) {
	i.state.mu.Lock()
	turn := i.state.kernels[id]
	if turn == nil {
		if i.state.kernels == nil {
			i.state.kernels = map[string]chan struct{}{}
		}
		turn = make(chan struct{}, 1)
		i.state.kernels[id] = turn
	}
	i.state.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (i *interpreter) list() error {
	all, err := i.contexts()
	if err != nil {
		return err
	}
	answerJSON(i.w, http.StatusOK, all)
	return nil
}

// create starts the kernel of a new context.
func (i *interpreter) create() error {
	var body struct{ Language, CWD string }
	if err := i.body(&body); err != nil {
		return err
	}
	if err := checkLanguage(body.Language); err != nil {
		return err
	}
	all, err := i.contexts()
	if err != nil {
		return err
	}
	if len(all) >= maxContexts {
		return statusf(http.StatusTooManyRequests, "the sandbox has %d contexts: remove one",
			len(all))
	}
	c, err := i.defaultContext()
	if err != nil {
		return err
	}
	c.ID = strings.ToLower(rand.Text())
	if body.CWD != "" {
		own, err := i.state.ownAccount(i.r.Context(), i.box)
		if err != nil {
			return err
		}
		c.Dir = own.path(body.CWD)
		info, err := i.box.Files().Stat(i.r.Context(), c.Dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return statusf(http.StatusBadRequest, "cwd: there is no directory %q", c.Dir)
		}
		if err != nil {
			return fmt.Errorf("cwd: %w", err)
		}
	}
	client, err := i.connect(i.r.Context(), c)
	if err != nil {
		return err
	}
	_ = client.Close() // the kernel goes on
	answerJSON(i.w, http.StatusOK, c)
	return nil
}

// restart gives a context a fresh kernel, in the directory where it began. Code that runs in the
// context ends.
func (i *interpreter) restart() error {
	return i.change(func(ctx context.Context, c *jupyter.Client) error { return c.Restart(ctx) })
}

// remove ends the kernel of a context. The default context begins afresh when it is used.
func (i *interpreter) remove() error {
	return i.change(func(ctx context.Context, c *jupyter.Client) error { return c.Stop(ctx) })
}

func (i *interpreter) change(f func(context.Context, *jupyter.Client) error) error {
	c, err := i.find(i.r.PathValue("context"))
	if err != nil {
		return err
	}
	client, err := i.connect(i.r.Context(), c)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := f(i.r.Context(), client); err != nil {
		return err
	}
	answerJSON(i.w, http.StatusOK, nil)
	return nil
}
