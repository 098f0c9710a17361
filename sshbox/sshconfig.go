package sshbox

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/tempdir"
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
// the box's host key. They go when the box is closed; those of a program that was killed, with the next New or Reap.
//
// The clients reach the box through "docker exec", so the docker command has to be there; no port is opened. The configuration says how that finds the
// engine: by its address and the keys for TLS, or by the docker context, whatever the environment of the client is. (Of an engine that is Config.Docker
// only the address is known, unless the environment or the current context has the same.) What they start ends with them.
func (b *DockerSSHBox) SSHConfig() (path string, err error) {
	path, err = b.host.guests.config(b.host)
	if err != nil {
		return "", fmt.Errorf("ssh configuration of %s: %w", b, err)
	}
	return path, nil
}

// guestPrefix begins the names of these directories in os.TempDir.
const guestPrefix = "sandshell-sshconfig-"

// guestConfig is the directory for people's clients, once somebody has asked for it.
type guestConfig struct {
	mu     sync.Mutex
	dir    *tempdir.Dir
	closed bool
}

func (g *guestConfig) config(h *dockerHost) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return "", os.ErrClosed
	}
	if g.dir != nil {
		return filepath.Join(g.dir.Path, "config"), nil
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
	dir, err := tempdir.Make(guestPrefix)
	if err != nil {
		return "", err
	}
	if err := writeConfig(dir.Path, h, pem.EncodeToMemory(block), hostKey); err != nil {
		dir.Remove()
		return "", err
	}
	g.dir = dir
	return filepath.Join(dir.Path, "config"), nil
}

// writeConfig writes the files of a configuration.
func writeConfig(dir string, h *dockerHost, key []byte, hostKey ssh.PublicKey) error {
	name := h.container.Name
	proxy, err := proxyCommand(slices.Concat([]string{"docker"}, h.engine.DockerFlags(),
		[]string{"exec", "-i", h.container.ID, wire.Path, "join", h.container.Box}))
	if err != nil {
		return err
	}
	keyFile, err := configPath(filepath.Join(dir, "key"))
	if err != nil {
		return err
	}
	knownFile, err := configPath(filepath.Join(dir, "known_hosts"))
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`Host %s
	HostName %s
	User sandshell
	ProxyCommand %s
	IdentityFile %s
	IdentitiesOnly yes
	UserKnownHostsFile %s
	GlobalKnownHostsFile /dev/null
	HostKeyAlgorithms ssh-ed25519
	StrictHostKeyChecking yes
	PasswordAuthentication no
	ControlMaster no
	ControlPath none
`, name, name, proxy, keyFile, knownFile)
	known := name + " " + string(ssh.MarshalAuthorizedKey(hostKey))
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "key"), key, 0o600),
		os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(known), 0o600),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600),
	)
}

func (g *guestConfig) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.dir != nil {
		g.dir.Remove()
	}
}

// reapGuests removes the directories of programs that were killed: private keys are in them, even if no box takes those any more.
func reapGuests(log *slog.Logger) error {
	removed, err := tempdir.Reap(guestPrefix, func(string) error { return nil })
	if removed > 0 || err != nil {
		log.Debug("removed SSH configurations that were left", "directories", removed, "error", err)
	}
	return err
}
