package sshbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// TestKnownHosts dials with several known_hosts files, and expects a login or a HostKeyError.
func TestKnownHosts(t *testing.T) {
	s := startSSHD(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, ".ssh", "known_hosts")
	noError(t, os.Mkdir(filepath.Dir(file), 0o700))
	other := newKey(t, "").PublicKey()
	line := func(key ssh.PublicKey) string {
		return knownhosts.Line([]string{s.Address}, key) + "\n"
	}
	for _, c := range []struct {
		name, file string
		want       []string // nil: logs in
	}{
		{"known", line(s.HostKey), nil},
		{"hashed", knownhosts.HashHostname(knownhosts.Normalize(s.Address)) + " " +
			line(s.HostKey)[len(knownhosts.Normalize(s.Address))+1:], nil},
		{"a line that x/crypto does not understand", "example.com ssh-strange AAAA\n@nonsense\n" +
			line(s.HostKey), nil},
		{"no file", "", []string{"unknown", "there is no known_hosts file", "ssh-keyscan",
			ssh.FingerprintSHA256(s.HostKey), "FixedHostKey"}},
		{"not in the file", knownhosts.Line([]string{"example.com"}, s.HostKey),
			[]string{"unknown", file, "ssh-keyscan", ssh.FingerprintSHA256(s.HostKey)}},
		{"changed", line(other), []string{"has changed", file + ":1",
			ssh.FingerprintSHA256(s.HostKey), ssh.FingerprintSHA256(other), "ssh-keygen -R"}},
		{"changed, beside a line that x/crypto does not understand",
			"example.com ssh-strange AAAA\n" + line(other), []string{"has changed", file + ":2"}},
		{"revoked", "@revoked * " + strings.SplitN(line(s.HostKey), " ", 2)[1] + line(s.HostKey),
			[]string{"refused", "revoked"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			os.Remove(file)
			if c.file != "" {
				noError(t, os.WriteFile(file, []byte(c.file), 0o600))
			}
			config := s.config()
			config.HostKey = nil
			if c.want == nil {
				config, err := config.withDefaults()
				noError(t, err)
				h, err := config.logIn(t.Context())
				noError(t, err)
				h.Close()
				return
			}
			e := dialError(t, config, c.want...)
			var key *HostKeyError
			if !errors.As(e, &key) || !bytes.Equal(key.Key.Marshal(), s.HostKey.Marshal()) {
				t.Errorf("not a *HostKeyError with the key: %v", e)
			}
		})
	}
	t.Run("wrong fixed key", func(t *testing.T) {
		config := s.config()
		config.HostKey = ssh.FixedHostKey(other)
		dialError(t, config, "refused", ssh.FingerprintSHA256(s.HostKey))
	})
}

// TestKnownHostsWithAnotherKind shows that a server with several keys is accepted if one of them is
// known, even if the server prefers another.
func TestKnownHostsWithAnotherKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rsa := filepath.Join(dir, "rsa")
	execute(t, "ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", rsa)
	s := startSSHD(t, "HostKey "+rsa)
	public, err := os.ReadFile(rsa + ".pub")
	noError(t, err)
	rsaKey, _, _, _, err := ssh.ParseAuthorizedKey(public)
	noError(t, err)
	for _, key := range []ssh.PublicKey{rsaKey, s.HostKey} {
		file := filepath.Join(dir, "known_hosts")
		noError(t, os.WriteFile(file, []byte(knownhosts.Line([]string{s.Address}, key)+"\n"),
			0o600))
		c := s.config()
		c.HostKey, c.KnownHosts = nil, []string{file}
		c, err := c.withDefaults()
		noError(t, err)
		h, err := c.logIn(t.Context())
		if err != nil {
			t.Errorf("with a known key of type %s: %v", key.Type(), err)
			continue
		}
		h.Close()
	}
}

// TestKnownHostsAuthority accepts a host certificate of an authority in known_hosts.
func TestKnownHostsAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, hostKey := filepath.Join(dir, "ca"), filepath.Join(dir, "host")
	execute(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ca)
	execute(t, "ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", hostKey)
	execute(t, "ssh-keygen", "-q", "-s", ca, "-I", "test", "-h", "-n", "127.0.0.1", hostKey+".pub")
	s := startSSHD(t, "HostKey "+hostKey, "HostCertificate "+hostKey+"-cert.pub")
	public, err := os.ReadFile(ca + ".pub")
	noError(t, err)
	file := filepath.Join(dir, "known_hosts")
	noError(t, os.WriteFile(file, append([]byte("@cert-authority "+knownhosts.Normalize(s.Address)+
		" "), public...), 0o600))
	c := s.config()
	c.HostKey, c.KnownHosts = nil, []string{file}
	c, err = c.withDefaults()
	noError(t, err)
	h, err := c.logIn(t.Context())
	noError(t, err)
	h.Close()
}
