package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// A login is what is tried to log in, and the record of it.
type login struct {
	methods []ssh.AuthMethod
	offered []string // in words
	skipped []string // and why
	agent   net.Conn // nil if there is none
}

func (l *login) close() {
	if l.agent != nil {
		l.agent.Close()
	}
}

// login collects the ways to log in. Keys come first: those given, those of files, those of the agent. (x/crypto
// tries one method of a kind, so that all keys are in one; a server counts each, and OpenSSH stops at the sixth.)
func (c DialConfig) login(ctx context.Context) (*login, error) {
	l := &login{}
	unspecified := c.Signer == nil && len(c.KeyFiles) == 0 && !c.Agent && c.Password == "" && c.AskPassword == nil
	var signers []ssh.Signer
	add := func(s ssh.Signer, from string) {
		signers = append(signers, s)
		l.offered = append(l.offered, fmt.Sprintf("key %s (%s)", ssh.FingerprintSHA256(s.PublicKey()), from))
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
		l.methods = append(l.methods, ssh.PublicKeys(signers...))
	}
	if c.Password != "" || c.AskPassword != nil {
		l.addPassword(c)
	}
	if len(l.methods) == 0 {
		l.close()
		return nil, errors.New("nothing to log in with: no keys in ~/.ssh, no agent (SSH_AUTH_SOCK)" + l.also() +
			"; set DialConfig.Signer, KeyFiles, Agent or Password")
	}
	return l, nil
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
		add(s, file)
	}
	if !unspecified {
		return nil
	}
	for _, file := range defaultKeyFiles() {
		switch s, err := readKey(file); {
		case err == nil:
			add(s, file)
		case !errors.Is(err, fs.ErrNotExist):
			l.skipped = append(l.skipped, err.Error())
		}
	}
	return nil
}

// addAgent adds the agent's keys. The connection to it stays open until the login is done.
func (l *login) addAgent(ctx context.Context, socket string, add func(ssh.Signer, string)) error {
	if socket == "" {
		return errors.New("ssh-agent: SSH_AUTH_SOCK is not set: start an agent with \"eval $(ssh-agent)\" and add a key with ssh-add")
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

func (l *login) addPassword(c DialConfig) {
	ask := c.AskPassword
	if c.Password != "" {
		ask = func() (string, error) { return c.Password, nil }
	}
	l.offered = append(l.offered, "password")
	l.methods = append(l.methods, ssh.PasswordCallback(ask),
		// PAM's question for the password, which many servers have in place of it.
		ssh.KeyboardInteractive(func(_, _ string, questions []string, echos []bool) ([]string, error) {
			switch {
			case len(questions) == 0:
				return nil, nil
			case len(questions) > 1 || echos[0]:
				return nil, fmt.Errorf("the server asks %q, which is not for a password", questions)
			}
			answer, err := ask()
			return []string{answer}, err
		}))
}

// refused says what was tried in vain.
func (l *login) refused(err error) string {
	s := "login refused; tried " + strings.Join(l.offered, ", ") + l.also()
	if strings.Contains(err.Error(), "Too many") {
		return s + ": too many keys for the server: give the right one as Signer"
	}
	return s + " (wrong user, or is the key not in the server's authorized_keys?)"
}

func (l *login) also() string {
	if len(l.skipped) == 0 {
		return ""
	}
	return "; not tried: " + strings.Join(l.skipped, ", ")
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
		return nil, fmt.Errorf("private key %s is encrypted: add it to an agent (ssh-add) and set Agent, or decrypt it and set Signer: %w", file, err)
	case err != nil:
		return nil, fmt.Errorf("private key %s: %w", file, err)
	}
	return s, nil
}
