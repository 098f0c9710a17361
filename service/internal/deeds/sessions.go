package deeds

import (
	"errors"
	"io/fs"
	"net/http"
	"os/user"
	"syscall"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// maxSessions is how many sessions of a box requests can open.
const maxSessions = 100

func (d *deeds) sessionOperations() []api.Operation {
	const one = "/sessions/{session}"
	return []api.Operation{
		on(d, "POST", "/execute", execute),
		on(d, "POST", one+"/input", input),
		on(d, "POST", one+"/wait", wait),
		on(d, "POST", one+"/interrupt", interrupt),
		on(d, "GET", "/sessions", listSessions),
		on(d, "POST", "/sessions", openSession),
		on(d, "DELETE", one, closeSession),
		on(d, "GET", one+"/screen", screen),
		on(d, "POST", one+"/resize", resize),
	}
}

// session returns an open session of the box.
func (c *call) session(id string) (sandbox.Session, error) {
	s, ok := c.Session(id)
	if !ok {
		return nil, api.Errorf(http.StatusNotFound, "not_found",
			"there is no session %q in the box: GET …/sessions lists them, and POST opens one", id)
	}
	return s, nil
}

type sessionJSON struct {
	ID string `json:"id"`
}

type listJSON[T any] struct {
	Items []T `json:"items"`
}

func listSessions(c *call, _, _ *api.None) (any, error) {
	list := listJSON[sessionJSON]{Items: []sessionJSON{}}
	for _, s := range c.Sessions() {
		list.Items = append(list.Items, sessionJSON{s.ID()})
	}
	return list, nil
}

// startBody says how a session or a job starts.
type startBody struct {
	Dir  string            `spec:"working_dir"`
	Env  map[string]string `spec:"env"`
	User string            `spec:"user"`
	Rows int64             `spec:"rows"`
	Cols int64             `spec:"cols"`
}

// options returns the options of the session or job.
func (b *startBody) options() ([]sandbox.SessionOption, error) {
	if err := checkSize(b.Rows, b.Cols, 0); err != nil {
		return nil, err
	}
	env, err := api.Variables("env", b.Env)
	if err != nil {
		return nil, err
	}
	return []sandbox.SessionOption{sandbox.Dir(b.Dir), sandbox.User(b.User), sandbox.Env(env...),
		sandbox.Size(int(b.Rows), int(b.Cols))}, nil
}

// startError returns the error of a session or job that does not start, as one about the body if it
// is.
func startError(err error) error {
	var name user.UnknownUserError
	var id user.UnknownUserIdError
	switch {
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrClosed):
		return err
	case errors.As(err, &name), errors.As(err, &id):
		return api.Invalid("user", "%v", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid),
		errors.Is(err, syscall.ENOTDIR):
		return api.Invalid("working_dir", "%v", err)
	case errors.Is(err, fs.ErrPermission):
		return api.Errorf(http.StatusForbidden, "permission", "%v", err)
	}
	return err
}

// checkSize checks the size of a terminal, whose least number is least.
func checkSize(rows, cols, least int64) error {
	const most = 1000
	if min(rows, cols) < least || max(rows, cols) > most {
		return api.Invalid("rows, cols", "%d and %d: write numbers from 1 to %d", rows, cols, most)
	}
	return nil
}

var errTooManySessions = api.Errorf(http.StatusTooManyRequests, "too_many",
	"the box has %d sessions: close one first", maxSessions)

func openSession(c *call, _ *api.None, body *startBody) (any, error) {
	opts, err := body.options()
	if err != nil {
		return nil, err
	}
	if len(c.Sessions()) >= maxSessions {
		return nil, errTooManySessions
	}
	s, err := c.Open(c.r.Context(), opts...)
	if err != nil {
		return nil, startError(err)
	}
	return sessionJSON{s.ID()}, nil
}

func closeSession(c *call, _, _ *api.None) (any, error) {
	id := c.r.PathValue("session")
	if id == "main" {
		return nil, api.Errorf(http.StatusConflict, "conflict",
			"the main session lives as long as the box: interrupt its command, or send it \"exit\"")
	}
	s, err := c.session(id)
	if err != nil {
		return nil, err
	}
	return success, s.Close()
}

type screenJSON struct {
	Lines []string `json:"lines"`
	Row   int      `json:"row"`
	Col   int      `json:"col"`
}

func screen(c *call, _, _ *api.None) (any, error) {
	s, err := c.session(c.r.PathValue("session"))
	if err != nil {
		return nil, err
	}
	shown, err := s.Screen(c.r.Context())
	if err != nil {
		return nil, err
	}
	return screenJSON{shown.Lines, shown.Row, shown.Col}, nil
}

type sizeBody struct {
	Rows int64 `spec:"rows"`
	Cols int64 `spec:"cols"`
}

func resize(c *call, _ *api.None, body *sizeBody) (any, error) {
	if err := checkSize(body.Rows, body.Cols, 1); err != nil {
		return nil, err
	}
	s, err := c.session(c.r.PathValue("session"))
	if err != nil {
		return nil, err
	}
	return success, s.Resize(c.r.Context(), int(body.Rows), int(body.Cols))
}
