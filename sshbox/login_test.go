package sshbox

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// TestLoginErrorIsPrintable shows that a LoginError has no control characters of the server's
// texts.
func TestLoginErrorIsPrintable(t *testing.T) {
	err := &LoginError{Takes: []string{"password", "\x1b]0;title\a\n"}, Asked: []string{"\x1b[2J"}}
	for _, asked := range [][]string{nil, err.Asked} {
		err.Asked = asked
		if text := err.Error(); strings.ContainsAny(text, "\x1b\a\n") {
			t.Errorf("got %q", text)
		}
	}
}

func TestLoginRefused(t *testing.T) {
	s := startSSHD(t)
	t.Run("wrong key", func(t *testing.T) {
		c := s.config()
		c.Signer = newKey(t, "")
		dialError(t, c, "login refused", ssh.FingerprintSHA256(c.Signer.PublicKey()))
	})
	t.Run("wrong user", func(t *testing.T) {
		c := s.config()
		c.User = "nobody-of-that-name"
		dialError(t, c, "login refused")
	})
	t.Run("password", func(t *testing.T) {
		c := s.config()
		c.Signer, c.Password = nil, "secret-word"
		if e := dialError(t, c, "login refused", "password"); strings.Contains(e.Error(),
			"secret-word") {
			t.Errorf("the password is in the error: %v", e)
		}
	})
	t.Run("nothing to log in with", func(t *testing.T) {
		t.Setenv("HOME", t.TempDir())
		t.Setenv("SSH_AUTH_SOCK", "")
		c := s.config()
		c.Signer = nil
		dialError(t, c, "nothing to log in with", "Signer")
	})
	t.Run("agent without an agent", func(t *testing.T) {
		t.Setenv("SSH_AUTH_SOCK", "")
		c := s.config()
		c.Signer, c.Agent = nil, true
		dialError(t, c, "SSH_AUTH_SOCK")
	})
	t.Run("encrypted key", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "encrypted")
		// One round of its key derivation, because each takes a processor's time.
		execute(t, "ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", "phrase", "-f", file)
		c := s.config()
		c.Signer, c.KeyFiles = nil, []string{file}
		dialError(t, c, file, "is encrypted")
		c.KeyFiles = []string{file + "-none"}
		if e := dialError(t, c, "DialConfig.KeyFiles: ", file); !errors.Is(e, fs.ErrNotExist) {
			t.Errorf("got %v", e)
		}
		c = s.config()
		c.HostKey, c.KnownHosts = nil, []string{"/nope"}
		dialError(t, c, "DialConfig.KnownHosts: open /nope: ")
	})
	t.Run("no address", func(t *testing.T) {
		if _, err := Dial(t.Context(), DialConfig{}); err == nil ||
			!strings.Contains(err.Error(), "Address") {
			t.Errorf("got %v", err)
		}
	})
}

// TestLogin logs in with a key file and with an agent.
func TestLogin(t *testing.T) {
	s := startSSHD(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	noError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	login := func(t *testing.T, c DialConfig) {
		t.Helper()
		c, err := c.withDefaults()
		noError(t, err)
		h, err := c.logIn(t.Context())
		noError(t, err)
		h.Close()
	}
	t.Run("key file", func(t *testing.T) {
		c := s.config()
		c.Signer, c.KeyFiles = nil, []string{s.KeyFile}
		login(t, c)
	})
	t.Run("the usual key file", func(t *testing.T) {
		t.Setenv("SSH_AUTH_SOCK", "")
		data, err := os.ReadFile(s.KeyFile)
		noError(t, err)
		noError(t, os.WriteFile(filepath.Join(home, ".ssh", "id_ed25519"), data, 0o600))
		defer os.Remove(filepath.Join(home, ".ssh", "id_ed25519"))
		c := s.config()
		c.Signer, c.User = nil, ""
		login(t, c)
	})
	t.Run("agent", func(t *testing.T) {
		data, err := os.ReadFile(s.KeyFile)
		noError(t, err)
		key, err := ssh.ParseRawPrivateKey(data)
		noError(t, err)
		ring := agent.NewKeyring()
		noError(t, ring.Add(agent.AddedKey{PrivateKey: key}))
		socket := filepath.Join(t.TempDir(), "agent")
		listen(t, "unix", socket, func(c net.Conn) { agent.ServeAgent(ring, c) })
		t.Setenv("SSH_AUTH_SOCK", socket)
		c := s.config()
		c.Signer, c.Agent = nil, true
		login(t, c)
		c.Agent = false // Without any credentials in DialConfig, Dial asks the agent too.
		login(t, c)
	})
}

// TestWrongPassword shows that a wrong password gives the same error however OpenSSH's sshd asks
// for it.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		lines []string
		tried string
	}{
		{[]string{"PasswordAuthentication yes"}, "tried password"},
		{[]string{"PasswordAuthentication yes", "KbdInteractiveAuthentication yes"},
			"tried password"}, // OpenSSH's own defaults
		{[]string{"KbdInteractiveAuthentication yes"}, "login refused"}, // it asks no question
	} {
		s := startSSHD(t, append(server.lines, "LogLevel VERBOSE")...)
		for _, signer := range []ssh.Signer{nil, newKey(t, "")} {
			c := s.config()
			c.Signer, c.Password = signer, "wrong"
			tried := server.tried
			if signer != nil {
				tried = "tried key "
			}
			var refused *LoginError
			if e := dialError(t, c, "login refused", tried); !errors.As(e, &refused) {
				t.Errorf("%q: not a LoginError: %v", server.lines, e)
			}
		}
		s.Stop()
		if n := strings.Count(s.Log(), "Failed password"); n > 2 {
			t.Errorf("%q: the password was refused %d times:\n%s", server.lines, n, s.Log())
		}
	}
}

// TestTooManyKeys offers more keys than the server allows tries.
func TestTooManyKeys(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "MaxAuthTries 3")
	c := s.config()
	c.Signer = nil
	for range 5 {
		file := filepath.Join(t.TempDir(), "key")
		newKey(t, file)
		c.KeyFiles = append(c.KeyFiles, file)
	}
	dialError(t, c, "login refused", "too many keys")
}

// TestCertificateBesideKey shows that Dial tries the certificate beside a key before the key,
// unless it is for another key.
func TestCertificateBesideKey(t *testing.T) {
	dir := t.TempDir()
	ca := newKey(t, "")
	authorities := filepath.Join(dir, "ca.pub")
	noError(t, os.WriteFile(authorities, ssh.MarshalAuthorizedKey(ca.PublicKey()), 0o644))
	s := startSSHD(t, "TrustedUserCAKeys "+authorities)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	noError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	file := filepath.Join(home, ".ssh", "id_ed25519")
	key := newKey(t, file)
	certify := func(key ssh.PublicKey) {
		cert := &ssh.Certificate{Key: key, CertType: ssh.UserCert, KeyId: "me",
			ValidPrincipals: []string{s.User}, ValidBefore: ssh.CertTimeInfinity,
			Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}}}
		noError(t, cert.SignCert(rand.Reader, ca))
		noError(t, os.WriteFile(file+"-cert.pub", ssh.MarshalAuthorizedKey(cert), 0o644))
	}
	certify(key.PublicKey())
	for _, files := range [][]string{{file}, nil} {
		c := s.config()
		c.Signer, c.KeyFiles = nil, files
		box, err := Dial(t.Context(), c)
		noError(t, err)
		noError(t, box.Close())
	}
	certify(ca.PublicKey())
	c := s.config()
	c.Signer, c.KeyFiles = nil, []string{file}
	dialError(t, c, "login refused", "not tried: certificate "+file+"-cert.pub")
}

// TestRefusedSessions opens more sessions than fit into a connection, for which a box on a plain
// sshd logs in again. If the machine refuses that, the box does not try once more.
func TestRefusedSessions(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "LogLevel VERBOSE")
	c := s.config()
	c.MaxSessions = 3
	box, err := Dial(t.Context(), c)
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), nil, 0o644))
	for range 3 {
		var refused *LoginError
		_, err := box.Open(t.Context())
		for ; err == nil; _, err = box.Open(t.Context()) {
		}
		if !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
	}
	output(t, box, "echo here")
	noError(t, box.Close())
	s.Stop()
	if n := strings.Count(s.Log(), "Failed publickey"); n != 1 {
		t.Errorf("%d logins were refused:\n%s", n, s.Log())
	}
}
