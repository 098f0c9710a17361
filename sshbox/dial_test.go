package sshbox

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// dialError logs in with c and expects a refusal that names the address, the user and all of want.
func dialError(t *testing.T, c DialConfig, want ...string) *DialError {
	t.Helper()
	c, err := c.withDefaults()
	noError(t, err)
	h, err := c.host(t.Context())
	if err == nil {
		h.Close()
		t.Fatal("logged in")
	}
	var e *DialError
	if !errors.As(err, &e) {
		t.Fatalf("not a *DialError: %v", err)
	}
	for _, w := range append(want, c.Address, c.User) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %q", w, err)
		}
	}
	return e
}

func TestDialUnreachable(t *testing.T) {
	s := startSSHD(t)
	t.Run("refused", func(t *testing.T) {
		c := s.config()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		noError(t, err)
		c.Address = l.Addr().String()
		l.Close()
		if e := dialError(t, c, "connection refused"); !errors.Is(e, syscall.ECONNREFUSED) {
			t.Errorf("not ECONNREFUSED: %v", e)
		}
	})
	t.Run("no such host", func(t *testing.T) {
		c := s.config()
		c.Address = "no-such-host.invalid"
		var lookup *net.DNSError
		if e := dialError(t, c, "no-such-host.invalid:22", "no such host"); !errors.As(e, &lookup) {
			t.Errorf("not a DNSError: %v", e)
		}
	})
	t.Run("silent", func(t *testing.T) { // accepts, and never says a word
		c := s.config()
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(io.Discard, c) }).Addr().String()
		c.HandshakeTimeout = 100 * time.Millisecond
		dialError(t, c, "within 100ms")

		ctx, cancel := context.WithCancel(t.Context())
		c.HandshakeTimeout = time.Minute
		time.AfterFunc(50*time.Millisecond, cancel)
		begin := time.Now()
		c, err := c.withDefaults()
		noError(t, err)
		if _, err := c.host(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("another service", func(t *testing.T) {
		c := s.config()
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }).Addr().String()
		dialError(t, c)
	})
	t.Run("hangs up", func(t *testing.T) {
		c := s.config()
		var tries sync.Map
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { tries.Store(c.RemoteAddr().String(), true) }).Addr().String()
		c.HandshakeTimeout = time.Second
		dialError(t, c, "closed the connection before it said anything")
		n := 0
		tries.Range(func(any, any) bool { n++; return true })
		if n < 2 {
			t.Errorf("tried %d times: a server that has too many newcomers deserves another try", n)
		}
	})
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

func TestKnownHosts(t *testing.T) {
	s := startSSHD(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, ".ssh", "known_hosts")
	noError(t, os.Mkdir(filepath.Dir(file), 0o700))
	other := newKey(t, "").PublicKey()
	line := func(key ssh.PublicKey) string { return knownhosts.Line([]string{s.Address}, key) + "\n" }
	for _, c := range []struct {
		name, file string
		want       []string // nil: logs in
	}{
		{"known", line(s.HostKey), nil},
		{"hashed", knownhosts.HashHostname(knownhosts.Normalize(s.Address)) + " " + line(s.HostKey)[len(knownhosts.Normalize(s.Address))+1:], nil},
		{"a line that x/crypto does not understand", "example.com ssh-strange AAAA\n@nonsense\n" + line(s.HostKey), nil},
		{"no file", "", []string{"unknown", "there is no known_hosts file", "ssh-keyscan", ssh.FingerprintSHA256(s.HostKey), "FixedHostKey"}},
		{"not in the file", knownhosts.Line([]string{"example.com"}, s.HostKey), []string{"unknown", file, "ssh-keyscan", ssh.FingerprintSHA256(s.HostKey)}},
		{"changed", line(other), []string{"has changed", file + ":1", ssh.FingerprintSHA256(s.HostKey), ssh.FingerprintSHA256(other), "ssh-keygen -R"}},
		{"changed, beside a line that x/crypto does not understand", "example.com ssh-strange AAAA\n" + line(other), []string{"has changed", file + ":2"}},
		{"revoked", "@revoked * " + strings.SplitN(line(s.HostKey), " ", 2)[1] + line(s.HostKey), []string{"refused", "revoked"}},
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
				h, err := config.host(t.Context())
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

// A server with several keys shows the one that is known, whichever it prefers.
func TestKnownHostsWithAnotherKind(t *testing.T) {
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
		noError(t, os.WriteFile(file, []byte(knownhosts.Line([]string{s.Address}, key)+"\n"), 0o600))
		c := s.config()
		c.HostKey, c.KnownHosts = nil, []string{file}
		c, err := c.withDefaults()
		noError(t, err)
		h, err := c.host(t.Context())
		if err != nil {
			t.Errorf("known by %s: %v", key.Type(), err)
			continue
		}
		h.Close()
	}
}

// A host certificate, by the authority in known_hosts.
func TestKnownHostsAuthority(t *testing.T) {
	dir := t.TempDir()
	ca, hostKey := filepath.Join(dir, "ca"), filepath.Join(dir, "host")
	execute(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ca)
	execute(t, "ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", hostKey)
	execute(t, "ssh-keygen", "-q", "-s", ca, "-I", "test", "-h", "-n", "127.0.0.1", hostKey+".pub")
	s := startSSHD(t, "HostKey "+hostKey, "HostCertificate "+hostKey+"-cert.pub")
	public, err := os.ReadFile(ca + ".pub")
	noError(t, err)
	file := filepath.Join(dir, "known_hosts")
	noError(t, os.WriteFile(file, append([]byte("@cert-authority "+knownhosts.Normalize(s.Address)+" "), public...), 0o600))
	c := s.config()
	c.HostKey, c.KnownHosts = nil, []string{file}
	c, err = c.withDefaults()
	noError(t, err)
	h, err := c.host(t.Context())
	noError(t, err)
	h.Close()
}

// proxy is a wire to a server that can be cut, and that can go silent.
type proxy struct {
	address string
	mu      sync.Mutex
	conns   []net.Conn
	silent  chan struct{}
}

func startProxy(t *testing.T, to string) *proxy {
	p := &proxy{silent: make(chan struct{})}
	forward := func(dst, src net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := src.Read(b)
			if err != nil {
				dst.Close()
				return
			}
			select {
			case <-p.silent: // swallows
			default:
				dst.Write(b[:n])
			}
		}
	}
	p.address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, up)
		p.mu.Unlock()
		go forward(up, c)
		forward(c, up)
	}).Addr().String()
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func TestLost(t *testing.T) {
	s := startSSHD(t)
	lost := func(t *testing.T, h *sshhost.Host, p shellbox.Process, want string) {
		t.Helper()
		done := make(chan error)
		go func() { _, err := p.Wait(); done <- err }()
		select {
		case err := <-done:
			if err == nil {
				t.Error("a status came over a lost connection")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Wait hangs")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := h.Lost(ctx)
		var e *sandbox.LostError
		if !errors.As(err, &e) || !errors.Is(err, sandbox.ErrLost) || e.Box != "SSHBox" || !strings.Contains(err.Error(), want) {
			t.Errorf("Lost: %v", err)
		}
		if _, err := h.Start(ctx, sh("true")); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("Start: %v", err)
		}
		if _, err := h.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("Dial: %v", err)
		}
		p.Close()
	}
	sleep := func(t *testing.T, h *sshhost.Host) shellbox.Process {
		t.Helper()
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "30"}, Terminal: &shellbox.Terminal{Rows: 24, Cols: 80}})
		noError(t, err)
		return p
	}
	t.Run("alive", func(t *testing.T) {
		h := s.host(t, nil)
		if err := h.Lost(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("cut", func(t *testing.T) {
		wire := startProxy(t, s.Address)
		h := s.host(t, func(c *DialConfig) { c.Address = wire.address })
		p := sleep(t, h)
		l := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(io.Discard, c) })
		conn, err := h.Dial(t.Context(), "tcp", l.Addr().String())
		noError(t, err)
		defer conn.Close()
		time.AfterFunc(5*time.Millisecond, wire.cut)
		for err == nil {
			_, err = conn.Write([]byte("x"))
		}
		if !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("write: %v", err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, sandbox.ErrLost) { // io.EOF would say that all has come
			t.Errorf("read: %v", err)
		}
		lost(t, h, p, "by the server") // closed or, with what it has not read, reset
	})
	t.Run("silent", func(t *testing.T) {
		wire := startProxy(t, s.Address)
		h := s.host(t, func(c *DialConfig) { c.Address, c.KeepAlive, c.KeepAliveMax = wire.address, 50*time.Millisecond, 2 })
		p := sleep(t, h)
		close(wire.silent)
		lost(t, h, p, "does not answer: no answer for 100ms")
	})
	t.Run("alive under load", func(t *testing.T) {
		h := s.host(t, func(c *DialConfig) { c.KeepAlive, c.KeepAliveMax = 100*time.Millisecond, 10 })
		if r := run(t, h, sh("head -c 100000000 /dev/zero")); len(r.Stdout) != 100000000 {
			t.Errorf("got %d bytes", len(r.Stdout))
		}
	})
	t.Run("close of a silent one", func(t *testing.T) {
		wire := startProxy(t, s.Address)
		h := s.host(t, func(c *DialConfig) { c.Address = wire.address })
		p := sleep(t, h)
		close(wire.silent)
		begin := time.Now()
		p.Close()
		h.Close()
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("the server's process killed", func(t *testing.T) {
		h := s.host(t, nil)
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sh", "-c", "echo $PPID; sleep 30"}})
		noError(t, err)
		b := make([]byte, 20)
		n, err := p.Stdout().Read(b)
		noError(t, err)
		execute(t, "kill", "-KILL", strings.TrimSpace(string(b[:n])))
		lost(t, h, p, "closed by the server")
	})
}
