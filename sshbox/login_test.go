package sshbox

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
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
		if e := dialError(t, c, "login refused", "password"); strings.Contains(e.Error(), "secret-word") {
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
		_, private, err := ed25519.GenerateKey(rand.Reader)
		noError(t, err)
		block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("phrase"))
		noError(t, err)
		file := filepath.Join(t.TempDir(), "encrypted")
		noError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		c := s.config()
		c.Signer, c.KeyFiles = nil, []string{file}
		dialError(t, c, file, "is encrypted")
		c.KeyFiles = []string{file + "-none"}
		if e := dialError(t, c, file); !errors.Is(e, fs.ErrNotExist) {
			t.Errorf("got %v", e)
		}
	})
	t.Run("no address", func(t *testing.T) {
		if _, err := Dial(t.Context(), DialConfig{}); err == nil || !strings.Contains(err.Error(), "Address") {
			t.Errorf("got %v", err)
		}
	})
}

func TestLogin(t *testing.T) {
	s := startSSHD(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	noError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	login := func(t *testing.T, c DialConfig) {
		t.Helper()
		c, err := c.withDefaults()
		noError(t, err)
		h, err := c.host(t.Context())
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
		c.Agent = false // nothing given: the agent is asked all the same
		login(t, c)
	})
}
