package sshbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshhost"
	"golang.org/x/crypto/ssh"
)

// A DialConfig says which machine to log in to, as whom, and how. Only Address is required.
//
// If none of Signer, KeyFiles, Agent, Password, AskPassword and Answer is set, Dial tries the keys
// of the ssh-agent, if there is one, and then ~/.ssh/id_ed25519, id_ecdsa and id_rsa. It skips keys
// that are missing or encrypted.
type DialConfig struct {
	// Address is "host" or "host:port". The default port is 22.
	Address string
	// User is the name to log in with. Default: the name of the user that runs this program.
	User string

	// Signer is a private key to log in with, such as ssh.ParsePrivateKey returns.
	Signer ssh.Signer
	// KeyFiles are files with private keys to log in with, as ssh-keygen makes them. If
	// FILE-cert.pub lies beside FILE, Dial offers that certificate too. An encrypted key is an
	// error: add it to an agent, or decrypt it (ssh.ParsePrivateKeyWithPassphrase) and set Signer.
	KeyFiles []string
	// Agent offers the keys of the ssh-agent that SSH_AUTH_SOCK names.
	Agent bool
	// Password is given to the server once in each login: by "password", or as the answer to the
	// first "keyboard-interactive" question that asks for a password and does not echo.
	Password string
	// AskPassword is called when the server wants a password and Password is empty. If it returns
	// an error, the login fails.
	AskPassword func() (string, error)
	// Answer is called with each other "keyboard-interactive" question, such as one for a code or
	// for a new password, and returns the answer. If it returns an error, the login fails. If
	// Answer is nil, a login with such a question fails, and its error quotes the question.
	// HandshakeTimeout includes the time that Answer takes.
	Answer func(question string) (string, error)

	// HostKey decides whether the machine is the right one, for example ssh.FixedHostKey(key).
	// Default: KnownHosts decides.
	HostKey ssh.HostKeyCallback
	// KnownHosts are files in the format of OpenSSH's known_hosts, which may have hashed names and
	// certificate authorities. Default: those of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
	// that exist.
	KnownHosts []string

	// Dir is the directory in which sessions start. Default: the user's home.
	Dir string
	// Env is added to the environment of all that is started, each "NAME=value". If a name occurs
	// several times, the last entry counts. The server's AcceptEnv does not matter.
	Env []string
	// Shell is the program that sessions run, with its arguments. Default: bash, or sh if there is
	// no bash.
	Shell []string

	// HandshakeTimeout bounds connecting, key exchange and login together, for each connection.
	// Default: 15 s.
	HandshakeTimeout time.Duration
	// KeepAlive is how often the box asks the server whether it is there. If KeepAlive is negative,
	// the box does not ask. Without boxd, a box that is lost stays lost. If the network may be
	// silent for some seconds and come back, choose a longer time. Default: 2 s.
	KeepAlive time.Duration
	// KeepAliveMax is the number of unanswered questions after which the machine is lost. Default:
	// 3, so that calls return ErrLost within 10 s.
	KeepAliveMax int
	// MaxSessions is how many sessions, jobs and Runs share a connection. For more, the box makes
	// another connection. If a server allows fewer, the box notices. Default: 10, as
	// OpenSSH's MaxSessions.
	MaxSessions int
	// DialContext connects to the machine, for example through a proxy. Any Sandbox's Dial will do.
	// Default: net.Dialer's.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// Boxd is the directory on the machine for boxd, the program that carries the box. It is
	// absolute or below "~/", and nobody else may be able to write to it. NoBoxd stands for no
	// boxd. Default: $XDG_CACHE_HOME/sandshell there, or ~/.cache/sandshell if that variable is not
	// set. See "A machine" in the package's documentation, and SSHBox.Boxd.
	Boxd string
	// Linger is how long a box with boxd goes on after its program was killed or cut off, and how
	// long the program tries to connect again. It is at least a second. Default: 30 s.
	Linger time.Duration
	// Keep lets the box outlive its program: see Machine.Attach and Detach. It stays until
	// somebody closes it. If boxd cannot run on the machine, Dial fails.
	Keep bool

	// Grace is how long a command that is being killed may take to end after ^C, and again after
	// SIGTERM. Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt, its startup files included.
	// Default: 30 s.
	StartLimit time.Duration
	// Logger gets events that are in no result, and at debug level each command: see
	// shellbox.Options. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// NoBoxd is a value of DialConfig.Boxd: no program is brought to the machine.
const NoBoxd = "none"

// withDefaults returns the DialConfig with its defaults filled in, or an error that names the first
// field that is wrong.
func (c DialConfig) withDefaults() (DialConfig, error) {
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("sshbox: %w", err)
	}
	address, err := withSSHPort(c.Address)
	if err != nil {
		return c, fmt.Errorf("sshbox: DialConfig.Address: %w", err)
	}
	c.Address = address
	if c.User == "" {
		u, err := user.Current()
		if err != nil {
			return c, fmt.Errorf("sshbox: DialConfig.User: the current user's name is not known: "+
				"give a name: %w", err)
		}
		c.User = u.Username[strings.LastIndexByte(u.Username, '\\')+1:] // Windows: DOMAIN\name
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = 15 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 2 * time.Second
	}
	if c.KeepAliveMax == 0 {
		c.KeepAliveMax = 3
	}
	if c.MaxSessions == 0 {
		c.MaxSessions = sshhost.DefaultMaxSessions
	}
	if c.DialContext == nil {
		c.DialContext = new(net.Dialer).DialContext
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	c.Logger = guard.Logger(c.Logger)
	return c, nil
}

func (c DialConfig) validate() error {
	if err := environ.Check("DialConfig.Env", c.Env); err != nil {
		return err
	}
	if err := remotebox.CheckShell("DialConfig.Shell", c.Shell); err != nil {
		return err
	}
	if c.Boxd != "" && c.Boxd != NoBoxd && !strings.HasPrefix(c.Boxd, "/") &&
		!strings.HasPrefix(c.Boxd, "~/") || strings.Contains(c.Boxd, "\n") {
		return fmt.Errorf("DialConfig.Boxd: %q is not a directory's name: give one that begins "+
			"with / or ~/, or NoBoxd", c.Boxd)
	}
	if c.Keep && c.Boxd == NoBoxd {
		return errors.New("DialConfig.Keep: it needs boxd, and DialConfig.Boxd is NoBoxd: leave " +
			"one of them out")
	}
	if err := checkLinger("DialConfig.Linger", c.Linger); err != nil {
		return err
	}
	for _, limit := range []struct {
		field    string
		value    any
		negative bool
		zero     string // what 0 stands for
	}{
		{"HandshakeTimeout", c.HandshakeTimeout, c.HandshakeTimeout < 0, "15s"},
		{"KeepAliveMax", c.KeepAliveMax, c.KeepAliveMax < 0, "3"},
		{"MaxSessions", c.MaxSessions, c.MaxSessions < 0, "10"},
		{"Grace", c.Grace, c.Grace < 0, "1s"},
		{"StartLimit", c.StartLimit, c.StartLimit < 0, "30s"},
	} {
		if limit.negative {
			return negativeError("DialConfig."+limit.field, limit.value, limit.zero)
		}
	}
	return nil
}

// withSSHPort returns a "host" or "host:port" with its port.
func withSSHPort(address string) (string, error) {
	fail := func(what string) (string, error) {
		return "", fmt.Errorf("%q %s: give \"host\" or \"host:port\"", address, what)
	}
	switch {
	case address == "":
		return fail("is empty")
	case strings.Contains(address, "://"):
		return fail("is a URL")
	case strings.Contains(address, "@"):
		return fail("has a user, for which there is DialConfig.User")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"), ""
	}
	if port == "" {
		port = "22"
	}
	full := net.JoinHostPort(host, port)
	if _, _, err = net.SplitHostPort(full); err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fail("has a port that is not a number from 1 to 65535")
	}
	if host == "" {
		return fail("has no host")
	}
	return full, nil
}
