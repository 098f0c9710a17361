package sshbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// A DialConfig says which machine to log in to, as whom, and how. Only Address is required.
type DialConfig struct {
	// Address is "host" or "host:port". The port is 22 if it is not given.
	Address string
	// User is the name to log in with. Default: the name of the user that this program runs as.
	User string

	// Signer is the private key to log in with, from ssh.ParsePrivateKey or of your own.
	Signer ssh.Signer
	// KeyFiles are private keys to log in with, in files as ssh-keygen makes them. A certificate is
	// used that lies beside its key, as FILE-cert.pub. An encrypted key is an error: add it to an
	// agent, or decrypt it (ssh.ParsePrivateKeyWithPassphrase) and give it as Signer.
	KeyFiles []string
	// Agent offers the keys of the ssh-agent that SSH_AUTH_SOCK names.
	Agent bool
	// Password is given to the server once in each login: by "password", or as the answer to the
	// first "keyboard-interactive" question that asks for a password and does not echo.
	Password string
	// AskPassword is called for the password when it is needed, if Password is empty. An error ends
	// the login.
	AskPassword func() (string, error)
	// Answer is called with each other "keyboard-interactive" question, such as one for a code or
	// for a new password, and returns the answer. An error ends the login. Default: a login with
	// such a question fails, and its error tells the question. HandshakeTimeout bounds the answers
	// too.
	Answer func(question string) (string, error)
	// When none of the six is given: the agent, if there is one, and ~/.ssh/id_ed25519, id_ecdsa
	// and id_rsa, as far as they are there and not encrypted.

	// HostKey decides whether the machine is the right one, for example ssh.FixedHostKey(key).
	// Default: KnownHosts decides.
	HostKey ssh.HostKeyCallback
	// KnownHosts are files as OpenSSH has them, hashed names and certificate authorities included.
	// Default: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts, as far as they are there.
	KnownHosts []string

	// Dir is the directory in which sessions start. Default: the user's home.
	Dir string
	// Env is added to the environment of all that is started, "NAME=value"; later ones win. The
	// server's AcceptEnv has no say in it.
	Env []string
	// Shell is the program that sessions run, with its arguments. Default: bash, and sh where there
	// is no bash.
	Shell []string

	// HandshakeTimeout bounds connecting, key exchange and login together, each time. Default: 15
	// s.
	HandshakeTimeout time.Duration
	// KeepAlive is how often the server is asked whether it is there. Default: 2 s; negative:
	// never. Without boxd, where the network may be silent for longer than some seconds and come
	// back, give more: a machine that is lost stays lost.
	KeepAlive time.Duration
	// KeepAliveMax is after how many questions without any sign of life the machine is lost.
	// Default: 3, so that calls return ErrLost within 10 s.
	KeepAliveMax int
	// MaxSessions is how many sessions, jobs and Runs share a connection; more open one more.
	// Default: 10, which is OpenSSH's own default for MaxSessions. A server that takes fewer is
	// found out.
	MaxSessions int
	// DialContext connects to the machine, through a proxy or another sandbox: any Sandbox's Dial
	// will do. Default: net.Dialer's.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// Boxd says where on the machine boxd is to lie, the program that carries the box: a directory,
	// absolute or below "~/", that nobody else can write to. Default: $XDG_CACHE_HOME/sandshell
	// there, else ~/.cache/sandshell. [NoBoxd]: nowhere. See "A machine" in the package's
	// documentation, and [SSHBox.Boxd].
	Boxd string
	// Linger is for how long a box that boxd carries goes on without its program, which has been
	// killed or cut off, and for how long the program tries to reach it again. Default: 30 s; a
	// second or more.
	Linger time.Duration
	// Keep has the box stay after Detach, or whatever end this program has, until somebody closes
	// it: see [Machine.Attach]. Where boxd cannot run, Dial fails.
	Keep bool

	// Grace is how long a command that is to be killed may take after ^C, and again after SIGTERM.
	// Default: 1 s.
	Grace time.Duration
	// StartLimit bounds the time that a shell takes to its first prompt, its startup files
	// included. Default: 30 s.
	StartLimit time.Duration
	// Logger gets what happens beside the results, and at debug level each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger
}

// An SSHBox is a sandbox on a machine that one can log in to with SSH. It isolates nothing beyond
// what the account there does. It has all methods of sandbox.Sandbox, such as Execute, those of
// plugin.Mixin, and Detach, Session and Sessions of shellbox.Box.
type SSHBox struct {
	*shellbox.Box
	*plugin.Mixin
	boxd *sshlogin.Box // nil without boxd
	why  string        // there is none
}

var (
	_ sandbox.Sandbox    = (*SSHBox)(nil)
	_ plugin.Installer   = (*SSHBox)(nil)
	_ plugin.Environment = (*SSHBox)(nil)
)

// Dial logs in and starts the main session. Its errors are *DialError as long as that is about the
// connection: they name address, user and reason. A refused login is a *LoginError too, and a wrong
// host key a *HostKeyError. ctx governs Dial only.
func Dial(ctx context.Context, c DialConfig) (*SSHBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	h, boxd, why, err := c.place(ctx)
	if err != nil {
		return nil, err
	}
	box, err := shellbox.New(ctx, h, c.options())
	if err != nil {
		return nil, fmt.Errorf("sshbox: dial %s@%s: %w", c.User, c.Address, err)
	}
	return newSSHBox(box, boxd, why), nil
}

func newSSHBox(box *shellbox.Box, boxd *sshlogin.Box, why string) *SSHBox {
	b := &SSHBox{Box: box, boxd: boxd, why: why}
	b.Mixin = plugin.NewMixin(b)
	return b
}

func (c DialConfig) options() shellbox.Options {
	return shellbox.Options{Dir: c.Dir, Shell: c.Shell, Grace: c.Grace, StartLimit: c.StartLimit,
		Logger: c.Logger}
}

// A DialError says why a machine could not be logged in to.
type DialError struct {
	User, Address string // the address with its port
	Reason        string
	Err           error // the underlying error
}

func (e *DialError) Error() string {
	return "sshbox: dial " + e.User + "@" + e.Address + ": " + e.Reason
}
func (e *DialError) Unwrap() error { return e.Err }

// withDefaults fills in what the zero values mean.
func (c DialConfig) withDefaults() (DialConfig, error) {
	if c.Address == "" {
		return c, errors.New("sshbox: DialConfig.Address is empty: give \"host\" or \"host:port\"")
	}
	address, err := withSSHPort(c.Address)
	if err != nil {
		return c, fmt.Errorf("sshbox: DialConfig.Address: %w", err)
	}
	c.Address = address
	if err := environ.Check(c.Env); err != nil {
		return c, fmt.Errorf("sshbox: DialConfig.Env: %w", err)
	}
	if c.User == "" {
		u, err := user.Current()
		if err != nil {
			return c, fmt.Errorf("sshbox: DialConfig.User is empty, and the current user is not "+
				"known: %w", err)
		}
		c.User = u.Username[strings.LastIndexByte(u.Username, '\\')+1:] // Windows has DOMAIN\name
	}
	if c.HandshakeTimeout <= 0 {
		c.HandshakeTimeout = 15 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 2 * time.Second
	}
	if c.KeepAliveMax <= 0 {
		c.KeepAliveMax = 3
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = sshhost.DefaultMaxSessions
	}
	if c.DialContext == nil {
		c.DialContext = new(net.Dialer).DialContext
	}
	if c.Boxd != "" && c.Boxd != NoBoxd && !strings.HasPrefix(c.Boxd, "/") &&
		!strings.HasPrefix(c.Boxd, "~/") || strings.Contains(c.Boxd, "\n") {
		return c, fmt.Errorf("sshbox: DialConfig.Boxd is %q: give an absolute directory of the "+
			"machine's, one below \"~/\", or NoBoxd", c.Boxd)
	}
	if c.Keep && c.Boxd == NoBoxd {
		return c, errors.New("sshbox: DialConfig.Keep needs boxd, and Boxd is NoBoxd")
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	if c.Linger < time.Second {
		return c, fmt.Errorf("sshbox: DialConfig.Linger is %v: it has to be a second or more",
			c.Linger)
	}
	c.Logger = guard.Logger(c.Logger)
	return c, nil
}

// withSSHPort returns a "host" or "host:port" with its port.
func withSSHPort(address string) (string, error) {
	if strings.Contains(address, "://") {
		return "", fmt.Errorf("%q is a URL: give \"host\" or \"host:port\"", address)
	}
	if strings.Contains(address, "@") {
		return "", fmt.Errorf("%q has a user: User is a field of its own", address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"), ""
	}
	if port == "" {
		port = "22"
	}
	address = net.JoinHostPort(host, port)
	_, _, err = net.SplitHostPort(address)
	if n, nerr := strconv.ParseUint(port, 10, 16); err == nil && (nerr != nil || n == 0) {
		err = fmt.Errorf("%q: the port is not a number from 1 to 65535", address)
	}
	if err == nil && host == "" {
		err = fmt.Errorf("%q has no host", address)
	}
	return address, err
}

// host logs in.
func (c DialConfig) host(ctx context.Context) (*sshhost.Host, error) {
	first, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return sshhost.New(first, sshhost.Config{
		Dial: c.untilRefused(), MaxSessions: c.MaxSessions, Env: slices.Clone(c.Env),
	}), nil
}

// untilRefused makes connections until a login is refused. It does not try again then.
func (c DialConfig) untilRefused() func(context.Context) (*sshconn.Conn, error) {
	var refused atomic.Pointer[error]
	return func(ctx context.Context) (*sshconn.Conn, error) {
		if err := refused.Load(); err != nil {
			return nil, *err
		}
		conn, err := c.connect(ctx)
		var login *LoginError
		if errors.As(err, &login) {
			refused.Store(&err)
		}
		return conn, err
	}
}

// connect makes one connection, and keeps it alive. A server that has too many connections that
// have not logged in hangs up on newcomers at random (MaxStartups): it is tried again, a few times.
func (c DialConfig) connect(ctx context.Context) (*sshconn.Conn, error) {
	ctx, cancel := ctxerr.WithLimit(ctx, c.HandshakeTimeout, sshconn.ErrNoHandshake)
	defer cancel()
	pause := 50 * time.Millisecond
	var hungUp error // how the last try ended
	for attempt := 1; ; attempt++ {
		conn, err := c.connectOnce(ctx)
		if err == nil {
			if c.KeepAlive > 0 {
				conn.Keep(c.KeepAlive, c.KeepAliveMax)
			}
			return conn, nil
		}
		var unwelcome *sshconn.UnwelcomeError
		switch {
		case errors.As(err, &unwelcome) && attempt < 6:
			hungUp = err
		case hungUp != nil && timedOut(ctx): // it says more than that this try was cut short
			return nil, hungUp
		default:
			return nil, err
		}
		c.Logger.Debug("the server hung up on a new connection; trying again", "address", c.Address,
			"attempt", attempt, "error", err)
		select {
		case <-time.After(pause + rand.N(pause)):
			pause *= 2
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (c DialConfig) connectOnce(ctx context.Context) (*sshconn.Conn, error) {
	fail := func(reason string, err error) error {
		return &DialError{User: c.User, Address: c.Address, Reason: reason, Err: err}
	}
	keys, err := c.hostKeys(ctx)
	if err != nil {
		return nil, fail(err.Error(), err)
	}
	login, err := c.login(ctx)
	if err != nil {
		return nil, fail(err.Error(), err)
	}
	defer login.close()
	dial := func() (net.Conn, error) { return c.DialContext(ctx, "tcp", c.Address) }
	raw, err := callback(ctx, "DialConfig.DialContext", dial, func(late net.Conn) { late.Close() })
	if err != nil {
		return nil, fail(dialReason(ctx, err, c.HandshakeTimeout), ctxerr.Explain(ctx, err))
	}
	login.line = &line{Conn: raw}
	config := &ssh.ClientConfig{
		User: c.User, AuthCallback: login.next,
		HostKeyCallback: keys.check, HostKeyAlgorithms: keys.algorithms(c.Address,
			raw.RemoteAddr()),
	}
	config.Ciphers = sshconn.PreferredCiphers()
	conn, err := sshconn.Handshake(ctx, login.line, c.Address, config, nil)
	if err == nil {
		return conn, nil
	}
	if wrong := keys.err.Load(); wrong != nil {
		return nil, fail(wrong.Error(), wrong)
	}
	var unwelcome *sshconn.UnwelcomeError
	switch {
	case ctx.Err() != nil:
		return nil, fail(dialReason(ctx, err, c.HandshakeTimeout), ctxerr.Explain(ctx, err))
	case errors.As(err, &unwelcome):
		return nil, fail(err.Error()+" (is it an SSH server, and does it let this machine in?)",
			err)
	}
	if refused := login.failed(err); refused != nil {
		return nil, fail(refused.Error(), refused)
	}
	return nil, fail(strings.TrimPrefix(err.Error(), "ssh: "), err)
}

// timedOut reports whether HandshakeTimeout is over. The dialer's own timer may be a moment ahead
// of the context's.
func timedOut(ctx context.Context) bool {
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		<-ctx.Done()
	}
	return errors.Is(ctxerr.Of(ctx), sshconn.ErrNoHandshake)
}

// dialReason puts what kept a connection from being made in words that do not repeat the address.
func dialReason(ctx context.Context, err error, limit time.Duration) string {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case timedOut(ctx):
		return fmt.Sprintf("no answer, or no SSH handshake, within %v (is it up, reachable, and "+
			"an SSH server?)", limit)
	case ctx.Err() != nil:
		return ctxerr.Of(ctx).Error()
	case errors.As(err, &lookup):
		return "no such host: " + lookup.Error()
	case errors.As(err, &op) && op.Err != nil:
		return op.Err.Error() + " (is an SSH server running there?)"
	}
	return err.Error()
}
