package e2b

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
)

// A Config says how a Handler works. Service and Keys must be set.
type Config struct {
	// Service has the boxes.
	Service *service.Service
	// Keys returns the owner of an API key. ok is false if there is no such key. It is called for
	// each request of the control plane, from several goroutines, and compares keys in constant
	// time.
	Keys func(key string) (owner string, ok bool)
	// Templates maps names of templates to the IDs of specs. A name that is not in it is the ID of
	// a spec itself. "base", which the SDKs take by default, is the default spec if nothing else
	// has that name.
	Templates map[string]string
	// Domain is the domain below which each port of a box has an address, PORT-ID.DOMAIN, which a
	// name server and a certificate of the caller's must lead here. Clients get it with each box.
	// Default: none. Clients then need E2B_SANDBOX_URL, and reach the data plane only.
	Domain string
	// PublicPorts lets anybody who knows the address of a box's port reach it, as E2B does.
	// Default: such requests need the header E2b-Traffic-Access-Token with the box's traffic token.
	PublicPorts bool
	// MaxUpload bounds the files of one request, in bytes. Default: 1 GiB.
	MaxUpload int64
	// Logger logs the failures that are answered with 500. Default: nothing is logged.
	Logger *slog.Logger
}

const defaultMaxUpload = 1 << 30

// Handler returns a handler of the API. It panics if Service or Keys is nil. All ends with the
// service: Handler holds nothing that needs a Close.
//
// Give the http.Server a ReadHeaderTimeout, an IdleTimeout and MaxHeaderBytes. A ReadTimeout or a
// WriteTimeout would cut streams and uploads that take longer.
func Handler(c Config) http.Handler {
	switch {
	case c.Service == nil:
		panic("e2b: Config.Service: it is nil: give the Service")
	case c.Keys == nil:
		panic("e2b: Config.Keys: it is nil: give a function that knows the API keys")
	}
	if c.MaxUpload == 0 {
		c.MaxUpload = defaultMaxUpload
	}
	c.Logger = guard.Logger(c.Logger)
	h := &handler{config: c, states: states{byID: map[string]*state{}}}
	h.control = h.controlPlane()
	go h.watchEnds()
	return h
}

type handler struct {
	config    Config
	states    states
	logs      logs
	snapshots snapshots
	control   http.Handler
}

// The headers of the data plane, and the port that stands for it.
const (
	idHeader      = "E2b-Sandbox-Id"
	portHeader    = "E2b-Sandbox-Port"
	tokenHeader   = "X-Access-Token"
	trafficHeader = "E2b-Traffic-Access-Token"
	dataPort      = 49983
)

// hostForm matches the host of a box's port: PORT-ID.DOMAIN.
var hostForm = regexp.MustCompile(`^([0-9]{1,5})-([A-Za-z0-9][A-Za-z0-9_-]{0,127})\.`)

// destination returns the box and the port that a request is for. id is "" for the control plane.
func destination(r *http.Request) (id string, port int, err error) {
	id, text := r.Header.Get(idHeader), r.Header.Get(portHeader)
	if id == "" {
		if m := hostForm.FindStringSubmatch(r.Host); m != nil {
			id, text = m[2], m[1]
		}
	}
	if text == "" {
		return id, dataPort, nil
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%s: %q is no port", portHeader, text)
	}
	return id, port, nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, port, err := destination(r)
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, "%v", err)
	case id == "" && r.URL.Path == "/files" && r.URL.Query().Has("signature"):
		// With E2B_SANDBOX_URL, a signed address names no box.
		if id, err = h.signed(r); err != nil {
			h.failWith(w, err)
			return
		}
		h.dataPlane(w, r, id)
	case id == "":
		h.control.ServeHTTP(w, r)
	case port == dataPort:
		h.dataPlane(w, r, id)
	default:
		h.toPort(w, r, id, port)
	}
}

// token returns the access token of a box.
func (h *handler) token(id string) string { return h.config.Service.Token("e2b", id) }

// trafficToken returns the token for the ports of a box.
func (h *handler) trafficToken(id string) string {
	return h.config.Service.Token("e2b traffic", id)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// dataPlane serves a request of a box's data plane.
func (h *handler) dataPlane(w http.ResponseWriter, r *http.Request, id string) {
	health := r.URL.Path == "/health" && r.Method == http.MethodGet
	given := r.Header.Get(tokenHeader)
	known := same(given, h.token(id))
	if health && !known { // whoever has no token must not wake the box
		h.health(w, r, id)
		return
	}
	if !known {
		why := "the access token is missing or wrong: send the box's as " + tokenHeader
		if r.URL.Path == "/files" && given == "" && r.URL.Query().Has("signature") {
			why = checkSignature(r, h.token(id))
		}
		if why != "" {
			fail(w, http.StatusUnauthorized, "%s", why)
			return
		}
	}
	box, err := h.config.Service.OpenRunning(r.Context(), id)
	if err != nil {
		h.failOpen(w, id, err)
		return
	}
	if health {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer h.config.Service.Used(id)()
	state := h.states.of(id)
	defer state.release()
	c := &call{handler: h, w: w, r: r, state: state, box: box}
	user, _, _ := r.BasicAuth()
	isFile := r.URL.Path == "/files"
	if isFile && r.URL.Query().Has("username") {
		user = r.URL.Query().Get("username")
	}
	if c.account, err = state.accountOf(r.Context(), box, user); err != nil {
		if isGone(err) {
			h.failOpen(w, id, service.ErrNotFound)
		} else if isFile {
			failFile(w, err)
		} else {
			failCall(w, err)
		}
		return
	}
	switch {
	case !isFile:
		c.rpc()
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		c.download()
	case r.Method == http.MethodPost:
		c.upload()
	default:
		fail(w, http.StatusMethodNotAllowed, "%s /files: send GET or POST", r.Method)
	}
}

// health answers whether a box runs.
func (h *handler) health(w http.ResponseWriter, r *http.Request, id string) {
	info, err := h.config.Service.Get(r.Context(), id)
	if err == nil && info.Status != service.Running {
		err = service.ErrConflict
	}
	if err != nil {
		h.failOpen(w, id, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// failOpen answers a request for a box that does not run, or that cannot be reached.
func (h *handler) failOpen(w http.ResponseWriter, id string, err error) {
	if !errors.Is(err, service.ErrNotFound) && !errors.Is(err, service.ErrConflict) &&
		!errors.Is(err, sandbox.ErrLost) {
		h.failWith(w, err)
		return
	}
	const code = http.StatusBadGateway
	answerJSON(w, code, map[string]any{"sandboxId": id, "code": code,
		"message": "The sandbox was not found"})
}

// failWith answers with the error of a call of the service.
func (h *handler) failWith(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	for _, k := range []struct {
		is     error
		status int
	}{
		{service.ErrNotFound, http.StatusNotFound}, {service.ErrConflict, http.StatusConflict},
		{service.ErrInvalid, http.StatusBadRequest},
		{errors.ErrUnsupported, http.StatusNotImplemented},
		{sandbox.ErrClosed, http.StatusServiceUnavailable},
		{context.Canceled, 499}, // as nginx has it: the client has gone
	} {
		if errors.Is(err, k.is) {
			fail(w, k.status, "%v", err)
			return
		}
	}
	h.config.Logger.Error("e2b: a request has failed", "error", err)
	fail(w, status, "%v", err)
}

// fail answers with an error of the control plane.
func fail(w http.ResponseWriter, status int, format string, args ...any) {
	answerJSON(w, status, map[string]any{"code": status, "message": fmt.Sprintf(format, args...)})
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone
}
