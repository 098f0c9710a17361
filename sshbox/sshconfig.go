package sshbox

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/wire"
	"golang.org/x/crypto/ssh"
)

// SSHConfig writes what a person's own clients need to reach the box, and returns the path of a configuration for OpenSSH: with
//
//	ssh -F PATH NAME
//	scp -F PATH file NAME:
//	rsync -e "ssh -F PATH" …
//
// and an editor's remote mode, which takes such a file too. NAME is ContainerName. Beside the configuration lie a key of its own, not the box's, and
// the box's host key. They go when the box is closed.
//
// The clients reach the box through "docker exec", so the docker command has to be there; no port is opened. What they start ends with them.
func (b *DockerSSHBox) SSHConfig() (path string, err error) {
	path, err = b.host.guests.config(b.host)
	if err != nil {
		return "", fmt.Errorf("ssh configuration of %s: %w", b, err)
	}
	return path, nil
}

// guestConfig is the directory for people's clients, once somebody has asked for it.
type guestConfig struct {
	mu     sync.Mutex
	dir    string
	closed bool
}

func (g *guestConfig) config(h *dockerHost) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return "", os.ErrClosed
	}
	if g.dir != "" {
		return filepath.Join(g.dir, "config"), nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "sandshell "+h.container.Name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	hostKey, err := h.AddGuest(ctx, key)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "sandshell-ssh-")
	if err != nil {
		return "", err
	}
	name := h.container.Name
	config := fmt.Sprintf(`Host %s
	HostName %s
	User sandshell
	ProxyCommand docker -H %s exec -i %s %s join %s
	IdentityFile %s
	IdentitiesOnly yes
	UserKnownHostsFile %s
	GlobalKnownHostsFile /dev/null
	HostKeyAlgorithms ssh-ed25519
	StrictHostKeyChecking yes
	PasswordAuthentication no
	ControlMaster no
	ControlPath none
`, name, name, percent(h.engine.DaemonHost()), h.container.ID, wire.Path, h.container.Box,
		quoteConfig(filepath.Join(dir, "key")), quoteConfig(filepath.Join(dir, "known_hosts")))
	known := name + " " + string(ssh.MarshalAuthorizedKey(hostKey))
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(known), 0o600),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600),
	)
	if err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	g.dir = dir
	return filepath.Join(dir, "config"), nil
}

// quoteConfig quotes a path for ssh_config, where a percent sign begins a token.
func quoteConfig(path string) string { return `"` + percent(path) + `"` }

func percent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

func (g *guestConfig) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.dir != "" {
		os.RemoveAll(g.dir)
	}
}
