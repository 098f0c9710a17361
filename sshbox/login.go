package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/printable"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// A LoginError says that the server has refused everything that was offered, or that AskPassword or
// Answer has returned an error. A box does not try such a login again, because a server may ban
// clients that do.
type LoginError struct {
	Offered []string // the keys and passwords that were offered, described in words
	Skipped []string // what could not be offered, and why
	Takes   []string // the methods that the server still accepts: "publickey", "password", …
	Asked   []string // the server's questions that nobody answered
	Err     error    // why the login ended early; nil if the server has refused each of Offered
}

// Error says what was offered, what was not, and why the login failed.
func (e *LoginError) Error() string {
	var b strings.Builder
	b.WriteString("login refused")
	if len(e.Offered) > 0 {
		b.WriteString("; tried " + strings.Join(e.Offered, ", "))
	}
	if len(e.Skipped) > 0 {
		b.WriteString("; not tried: " + strings.Join(e.Skipped, ", "))
	}
	if len(e.Asked) > 0 {
		const asked = "; the server asked %q, which is not for a password: set DialConfig.Answer"
		fmt.Fprintf(&b, asked, e.Asked)
	}
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, ": %v", e.Err)
	case len(e.Asked) == 0:
		fmt.Fprintf(&b, " (wrong user, key or password? The server takes %s)",
			printable.Line(strings.Join(e.Takes, ", ")))
	}
	return b.String()
}

// Unwrap returns e.Err.
func (e *LoginError) Unwrap() error { return e.Err }

// A login has the methods for one login, and records what happens to them.
type login struct {
	ctx     context.Context // bounds the callbacks of x/crypto, which have no context
	methods []method
	keys    []string // the keys, described in words
	skipped []string // keys that cannot be offered, and why
	agent   net.Conn // nil if there is none

	password func() (string, error)                // nil if there is none
	answer   func(question string) (string, error) // nil if nobody answers

	// x/crypto calls the callbacks of one connection one after the other, so no lock is needed.
	line          *line
	began         bool // the server has said which methods it accepts
	tried         []string
	passwordGiven bool // the password goes to the server once
	asked         []string
	err           error // the error of AskPassword or Answer, which ends the login
}

// A method is an ssh.AuthMethod and its name in RFC 4252.
type method struct {
	name string
	auth ssh.AuthMethod
}

// A line is a connection that records its first error.
type line struct {
	net.Conn
	mu  sync.Mutex
	err error
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	return n, l.note(err)
}

func (l *line) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	return n, l.note(err)
}

func (l *line) note(err error) error {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err == nil {
			l.err = err
		}
	}
	return err
}

func (l *line) broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *login) close() {
	if l.agent != nil {
		l.agent.Close()
	}
}

// login collects the methods, in ssh's order: keys, the server's questions, the password. The keys
// are Signer, those in files, and the agent's, in this order. They are one method, but the server
// counts each key: OpenSSH hangs up after six (MaxAuthTries).
func (c DialConfig) login(ctx context.Context) (*login, error) {
	l := &login{ctx: ctx, answer: c.Answer}
	unspecified := c.Signer == nil && len(c.KeyFiles) == 0 && !c.Agent &&
		c.Password == "" && c.AskPassword == nil && c.Answer == nil
	var signers []ssh.Signer
	add := func(s ssh.Signer, from string) {
		signers = append(signers, s)
		kind := "key"
		if _, ok := s.PublicKey().(*ssh.Certificate); ok {
			kind = "certificate"
		}
		sum := ssh.FingerprintSHA256(s.PublicKey())
		l.keys = append(l.keys, fmt.Sprintf("%s %s (%s)", kind, sum, from))
	}
	if err := l.addKeys(c, unspecified, add); err != nil {
		return nil, err
	}
	if socket := os.Getenv("SSH_AUTH_SOCK"); c.Agent || unspecified && socket != "" {
		err := l.addAgent(ctx, socket, add)
		if err != nil && c.Agent {
			l.close()
			return nil, err
		}
		if err != nil {
			l.skipped = append(l.skipped, err.Error())
		}
	}
	if len(signers) > 0 {
		keys := ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			l.tried = append(l.tried, l.keys...)
			return signers, nil
		})
		l.methods = append(l.methods, method{"publickey", keys})
	}
	l.addPassword(c)
	if len(l.methods) == 0 {
		l.close()
		skipped := ""
		if len(l.skipped) > 0 {
			skipped = "; not tried: " + strings.Join(l.skipped, ", ")
		}
		return nil, errors.New("nothing to log in with: no keys in ~/.ssh, no agent " +
			"(SSH_AUTH_SOCK)" + skipped + ": set DialConfig.Signer, KeyFiles, Agent or Password")
	}
	return l, nil
}

// next is the ssh.ClientAuthCallback. It returns the next method, or an error if none is left.
func (l *login) next(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.began = true
	if err := l.line.broken(); err != nil {
		return nil, fmt.Errorf("the connection broke while logging in: %w", err)
	}
	if l.err != nil {
		return nil, l.refused(c.AllowedMethods, l.err)
	}
	for _, m := range l.methods {
		tried := slices.Contains(c.TriedMethods, m.name) || m.name == "password" && l.passwordGiven
		if !tried && slices.Contains(c.AllowedMethods, m.name) {
			return m.auth, nil
		}
	}
	return nil, l.refused(c.AllowedMethods, nil)
}

// failed returns a *LoginError if the error of a handshake means that the server has refused the
// login. Otherwise it returns nil.
func (l *login) failed(err error) *LoginError {
	var refused *LoginError
	switch {
	case errors.As(err, &refused):
		return refused
	case !l.began || l.line.broken() != nil:
		return nil
	case len(l.tried) > 1: // the server has hung up and said why
		err = fmt.Errorf("%w: perhaps too many keys for the server: set Signer to the right one",
			err)
	}
	return l.refused(nil, err)
}

func (l *login) refused(takes []string, err error) *LoginError {
	return &LoginError{Offered: l.tried, Skipped: l.skipped, Takes: takes, Asked: l.asked, Err: err}
}

// addKeys adds the keys that the DialConfig names. If it names no way to log in, addKeys adds the
// keys in the default files.
func (l *login) addKeys(c DialConfig, unspecified bool, add func(ssh.Signer, string)) error {
	if c.Signer != nil {
		add(c.Signer, "Signer")
	}
	for _, file := range c.KeyFiles {
		s, err := readKey(file)
		if err != nil {
			return fmt.Errorf("DialConfig.KeyFiles: %w", err)
		}
		l.addFile(s, file, add)
	}
	if !unspecified {
		return nil
	}
	for _, file := range defaultKeyFiles() {
		switch s, err := readKey(file); {
		case err == nil:
			l.addFile(s, file, add)
		case !errors.Is(err, fs.ErrNotExist):
			l.skipped = append(l.skipped, err.Error())
		}
	}
	return nil
}

// addFile adds the certificate beside a key's file, if there is one, and then the key.
func (l *login) addFile(s ssh.Signer, file string, add func(ssh.Signer, string)) {
	switch cert, err := readCertificate(file+"-cert.pub", s); {
	case err == nil:
		add(cert, file+"-cert.pub")
	case !errors.Is(err, fs.ErrNotExist):
		l.skipped = append(l.skipped, err.Error())
	}
	add(s, file)
}

// addAgent adds the agent's keys. The connection to the agent stays open until close.
func (l *login) addAgent(ctx context.Context, socket string, add func(ssh.Signer, string)) error {
	if socket == "" {
		return errors.New("ssh-agent: SSH_AUTH_SOCK is not set: start an agent with \"eval " +
			"$(ssh-agent)\" and add a key with ssh-add")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("ssh-agent: %w", err)
	}
	l.agent = conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return fmt.Errorf("ssh-agent: %w", err)
	}
	for _, s := range signers {
		add(s, "agent")
	}
	return nil
}

func defaultKeyFiles() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var files []string
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		files = append(files, filepath.Join(home, ".ssh", name))
	}
	return files
}

func readKey(file string) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	s, err := ssh.ParsePrivateKey(data)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &encrypted):
		return nil, fmt.Errorf("private key %s is encrypted: add it to an agent (ssh-add) and "+
			"set Agent, or decrypt it and set Signer: %w", file, err)
	case err != nil:
		return nil, fmt.Errorf("private key %s: %w", file, err)
	}
	return s, nil
}

// readCertificate reads a key's certificate, as ssh-keygen -s makes it.
func readCertificate(file string, key ssh.Signer) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", file, err)
	}
	cert, ok := public.(*ssh.Certificate)
	if !ok {
		return nil, fmt.Errorf("certificate %s: it is a plain public key", file)
	}
	s, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", file, err)
	}
	return s, nil
}
