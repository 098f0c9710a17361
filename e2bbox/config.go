package e2bbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Config says which sandbox to make, and where. Its zero value is a sandbox of E2B's template
// "base", for the key in E2B_API_KEY.
type Config struct {
	// APIKey is the key of the API. Default: $E2B_API_KEY.
	APIKey string
	// Domain is that of the API and the sandboxes: api.DOMAIN, PORT-ID.DOMAIN. Default:
	// $E2B_DOMAIN, or e2b.app.
	Domain string
	// APIURL is the address of the control plane. Default: $E2B_API_URL, or the host api.DOMAIN by
	// https.
	APIURL string
	// SandboxURL is one address for the data planes of all sandboxes. Requests name the sandbox in
	// a header. Default: $E2B_SANDBOX_URL, or an address for each sandbox below Domain.
	SandboxURL string

	// Template is the name or the id of the template. Default: "base".
	Template string
	// Env is added to the environment of all that runs in the box, each "NAME=value". If a name
	// occurs several times, the last entry counts.
	Env []string
	// Metadata is kept with the sandbox, for List. Default: none.
	Metadata map[string]string
	// NoInternet makes a sandbox without access to the internet.
	NoInternet bool
	// Timeout is how long the sandbox goes on after its program was killed: see the package's
	// documentation. It is at least 15 s. Default: 5 min.
	Timeout time.Duration

	// PauseAtEnd pauses the sandbox at its end, in place of removing it: when the Timeout has
	// passed since the program was killed or has called Detach. Attach resumes it. Close removes
	// it.
	PauseAtEnd bool

	// User is the user as whom the box runs: "root", say. Default: the template's.
	User string
	// Dir is the directory in which sessions start. Default: the user's home.
	Dir string
	// Shell is the program that sessions run, with its arguments. Default: bash, or sh if there is
	// no bash.
	Shell []string
	// Grace is how long a command that is being killed may take to end after ^C, and again after
	// SIGTERM. Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt, its startup files included.
	// Default: 30 s.
	StartLimit time.Duration

	// Transport makes the HTTP requests. A box does not close it. Default: each box has its own,
	// which uses the proxies that the environment names.
	Transport http.RoundTripper
	// Logger gets events that are in no result, and at debug level each command: see
	// shellbox.Options. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultDomain  = "e2b.app"
	defaultTimeout = 5 * time.Minute
	minTimeout     = 15 * time.Second
	maxTimeout     = 365 * 24 * time.Hour
)

// withDefaults returns the Config with its defaults filled in, or an error that names the first
// field that is wrong.
func (c Config) withDefaults() (Config, error) {
	fail := func(field, format string, args ...any) (Config, error) {
		return c, fmt.Errorf("e2bbox: Config.%s: %s", field, fmt.Sprintf(format, args...))
	}
	c.APIKey = cmp.Or(c.APIKey, os.Getenv("E2B_API_KEY"))
	c.Domain = cmp.Or(c.Domain, os.Getenv("E2B_DOMAIN"), defaultDomain)
	c.APIURL = cmp.Or(c.APIURL, os.Getenv("E2B_API_URL"), "https://api."+c.Domain)
	c.SandboxURL = cmp.Or(c.SandboxURL, os.Getenv("E2B_SANDBOX_URL"))
	c.Template = cmp.Or(c.Template, "base")
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Logger = guard.Logger(c.Logger)
	if c.APIKey == "" {
		return fail("APIKey", "it is empty: give a key, or set E2B_API_KEY")
	}
	if strings.ContainsAny(c.Domain, "/:@ ") {
		return fail("Domain", "%q is no domain: give one without a scheme and a port, as e2b.app",
			c.Domain)
	}
	for _, u := range []struct{ field, value string }{{"APIURL", c.APIURL},
		{"SandboxURL", c.SandboxURL}} {
		if parsed, err := url.Parse(u.value); u.value != "" && (err != nil || parsed.Host == "" ||
			parsed.Scheme != "http" && parsed.Scheme != "https") {
			return fail(u.field, "%q: give a URL, as https://api.example.com", u.value)
		}
	}
	c.APIURL = strings.TrimSuffix(c.APIURL, "/")
	c.SandboxURL = strings.TrimSuffix(c.SandboxURL, "/")
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		return fail("Timeout", "%v: give at least %v and at most %v", c.Timeout, minTimeout,
			maxTimeout)
	}
	if strings.Contains(c.User, ":") {
		return fail("User", "%q: give a name without a colon", c.User)
	}
	if err := environ.Check("Config.Env", c.Env); err != nil {
		return c, fmt.Errorf("e2bbox: %w", err)
	}
	if err := remotebox.CheckShell("Config.Shell", c.Shell); err != nil {
		return c, fmt.Errorf("e2bbox: %w", err)
	}
	if c.Grace < 0 || c.StartLimit < 0 {
		return c, errors.New("e2bbox: Config.Grace and Config.StartLimit: one is negative: leave " +
			"it out for the default")
	}
	return c, nil
}

func (c Config) options() shellbox.Options {
	return shellbox.Options{Dir: c.Dir, Shell: c.Shell, Grace: c.Grace, StartLimit: c.StartLimit,
		Logger: c.Logger}
}

// newSandbox returns the request for the sandbox.
func (c Config) newSandbox() e2b.NewSandbox {
	seconds, secure := int64(c.Timeout/time.Second), true
	n := e2b.NewSandbox{TemplateID: c.Template, Timeout: &seconds, Secure: &secure,
		AutoPause: c.PauseAtEnd,
		Metadata:  c.Metadata}
	if c.NoInternet {
		internet := false
		n.Internet = &internet
	}
	if len(c.Env) > 0 {
		n.EnvVars = map[string]string{}
		for _, kv := range c.Env {
			name, value, _ := strings.Cut(kv, "=")
			n.EnvVars[name] = value
		}
	}
	return n
}

// A connection is how one box reaches the API.
type connection struct {
	config  Config
	http    *http.Client
	control *e2b.Control
	close   func()
}

// open returns a connection. c has its defaults.
func (c Config) open() *connection {
	transport, close := c.Transport, func() {}
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.DisableCompression = true
		transport, close = own, own.CloseIdleConnections
	}
	client := &http.Client{Transport: transport}
	return &connection{config: c, http: client, close: close,
		control: &e2b.Control{HTTP: client, Base: c.APIURL, Key: c.APIKey}}
}

// domain returns the domain of a sandbox.
func (c *connection) domain(s *e2b.Sandbox) string {
	if s.Domain != nil && *s.Domain != "" {
		return *s.Domain
	}
	return c.config.Domain
}

const dataPort = 49983

// address returns the address of a port of a sandbox, and the headers that requests need.
func (c *connection) address(s *e2b.Sandbox, port int) (string, http.Header) {
	if c.config.SandboxURL != "" {
		return c.config.SandboxURL, http.Header{"E2b-Sandbox-Id": {s.SandboxID},
			"E2b-Sandbox-Port": {fmt.Sprint(port)}}
	}
	return fmt.Sprintf("https://%d-%s.%s", port, s.SandboxID, c.domain(s)), http.Header{}
}

// client returns a client of a sandbox's data plane.
func (c *connection) client(s *e2b.Sandbox) *e2b.Client {
	base, header := c.address(s, dataPort)
	return &e2b.Client{HTTP: c.http, Base: base, Header: header, Token: s.EnvdAccessToken,
		User: c.config.User}
}
