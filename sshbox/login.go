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

// A LoginError says that a login has failed for good: the server has refused all that was offered,
// or AskPassword or Answer has returned an error. A box does not try that login again, because a
// server may shut out whoever does.
type LoginError struct {
	Offered []string // what was offered, in words
	Skipped []string // what could not be, and why
	Takes   []string // the methods that the server still takes: "publickey", "password", …
	Asked   []string // questions of the server's that nobody answered
	Err     error    // why it ended early; nil if the server has refused each of Offered
}

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

func (e *LoginError) Unwrap() error { return e.Err }

// A login is what is tried to log in, and the record of it.
type login struct {
	ctx     context.Context // of the connection that is being made
	methods []method
	keys    []string // in words
	skipped []string // and why
	agent   net.Conn // nil if there is none

	password func() (string, error)                // nil if there is none
	answer   func(question string) (string, error) // nil if nobody answers

	// Of one connection: x/crypto calls one after the other.
	line  *line
	began bool // the server has said what it takes
	tried []string
	given bool // the password, which goes to the server once
	asked []string
	err   error // of the password or an answer: it ends the login
}

// A method is an ssh.AuthMethod by its name in RFC 4252.
type method struct {
	name string
	auth ssh.AuthMethod
}

// A line is a connection that remembers that it broke.
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

// login collects the ways to log in. Keys come first: those given, those of files, those of the
// agent. They are one method, of which a server counts each try: OpenSSH stops at the sixth. Then
// come the server's questions, and then the password by itself: as with ssh.
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
		also := ""
		if len(l.skipped) > 0 {
			also = "; not tried: " + strings.Join(l.skipped, ", ")
		}
		return nil, errors.New("nothing to log in with: no keys in ~/.ssh, no agent " +
			"(SSH_AUTH_SOCK)" + also + "; set DialConfig.Signer, KeyFiles, Agent or Password")
	}
	return l, nil
}

// next is the ssh.ClientAuthCallback: it chooses the next method, and says that none is left.
func (l *login) next(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.began = true
	if err := l.line.broken(); err != nil {
		return nil, fmt.Errorf("the connection broke while logging in: %w", err)
	}
	if l.err != nil {
		return nil, l.refused(c.AllowedMethods, l.err)
	}
	for _, m := range l.methods {
		tried := slices.Contains(c.TriedMethods, m.name) || m.name == "password" && l.given
		if !tried && slices.Contains(c.AllowedMethods, m.name) {
			return m.auth, nil
		}
	}
	return nil, l.refused(c.AllowedMethods, nil)
}

// failed returns a *LoginError if that is what a handshake's error means.
func (l *login) failed(err error) *LoginError {
	var refused *LoginError
	switch {
	case errors.As(err, &refused):
		return refused
	case !l.began || l.line.broken() != nil:
		return nil
	case len(l.tried) > 1: // the server has hung up, with a word
		err = fmt.Errorf("%w: too many keys for the server? Give the right one as Signer", err)
	}
	return l.refused(nil, err)
}

func (l *login) refused(takes []string, err error) *LoginError {
	return &LoginError{Offered: l.tried, Skipped: l.skipped, Takes: takes, Asked: l.asked, Err: err}
}

// addKeys adds the keys that are given; if nothing is, those of the default files.
func (l *login) addKeys(c DialConfig, unspecified bool, add func(ssh.Signer, string)) error {
	if c.Signer != nil {
		add(c.Signer, "Signer")
	}
	for _, file := range c.KeyFiles {
		s, err := readKey(file)
		if err != nil {
			return err
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

// addFile adds the key of a file, and the certificate beside it before it.
func (l *login) addFile(s ssh.Signer, file string, add func(ssh.Signer, string)) {
	switch cert, err := readCertificate(file+"-cert.pub", s); {
	case err == nil:
		add(cert, file+"-cert.pub")
	case !errors.Is(err, fs.ErrNotExist):
		l.skipped = append(l.skipped, err.Error())
	}
	add(s, file)
}

// addAgent adds the agent's keys. The connection to it stays open until the login is done.
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

// readCertificate reads the certificate of a key, as ssh-keygen -s makes it.
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
