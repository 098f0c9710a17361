package remotebox

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
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/tempdir"
	"golang.org/x/crypto/ssh"
)

// A GuestHost is a box whose boxd lets guests in.
type GuestHost interface {
	// AddGuest lets the holder of a key log in as a guest, and returns boxd's host key.
	AddGuest(ctx context.Context, key ssh.PublicKey) (hostKey ssh.PublicKey, err error)
}

// sshConfigPrefix begins the names of these directories in os.TempDir.
const sshConfigPrefix = "sandshell-sshconfig-"

// An SSHConfig is a directory with what a person's own SSH clients need to reach one box: a
// configuration, a key and the box's host key. It is made when Path is first called. The zero value
// is ready for use. Its methods may be called from several goroutines.
type SSHConfig struct {
	mu     sync.Mutex
	dir    *tempdir.Dir
	making chan struct{} // closed when the Path that makes dir returns; nil if no Path does
	closed bool
}

// Path returns the path of a configuration for OpenSSH. In it, the box has that name, and the
// clients reach it by the command's standard streams. After Close the error is os.ErrClosed.
func (c *SSHConfig) Path(ctx context.Context, h GuestHost, name string,
	command []string) (string, error) {
	for {
		path, making, err := c.begin()
		if path != "" || err != nil {
			return path, err
		}
		if making == nil {
			break
		}
		select {
		case <-making:
		case <-ctx.Done():
			return "", ctxerr.Of(ctx)
		}
	}
	dir, err := makeSSHConfig(ctx, h, name, command)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.making)
	c.making = nil
	if err == nil && c.closed {
		dir.Remove()
		err = os.ErrClosed
	}
	if err != nil {
		return "", err
	}
	c.dir = dir
	return configIn(dir), nil
}

// begin returns the path if the directory is there, and making if another Path is making it. If it
// returns neither, the caller makes the directory.
func (c *SSHConfig) begin() (path string, making chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return "", nil, os.ErrClosed
	case c.dir != nil:
		return configIn(c.dir), nil, nil
	case c.making != nil:
		return "", c.making, nil
	}
	c.making = make(chan struct{})
	return "", nil, nil
}

func configIn(dir *tempdir.Dir) string { return filepath.Join(dir.Path, "config") }

// makeSSHConfig makes a key, has boxd let its holder in, and writes the directory.
func makeSSHConfig(ctx context.Context, h GuestHost, name string,
	command []string) (*tempdir.Dir, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "sandshell "+name)
	if err != nil {
		return nil, err
	}
	hostKey, err := h.AddGuest(ctx, key)
	if err != nil {
		return nil, err
	}
	dir, err := tempdir.Make(sshConfigPrefix)
	if err != nil {
		return nil, err
	}
	if err := writeSSHConfig(dir.Path, name, command, pem.EncodeToMemory(block),
		hostKey); err != nil {
		dir.Remove()
		return nil, err
	}
	return dir, nil
}

// writeSSHConfig writes the directory's files.
func writeSSHConfig(dir, name string, command []string, key []byte,
	hostKey ssh.PublicKey) error {
	proxy, err := proxyCommand(command)
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

// Close removes the directory. It does not wait for a Path that is under way; that one fails.
func (c *SSHConfig) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.dir != nil {
		c.dir.Remove()
	}
}

// ReapSSHConfigs removes the directories that killed programs have left: private keys are in them.
func ReapSSHConfigs(log *slog.Logger) error {
	removed, err := tempdir.Reap(sshConfigPrefix, func(string) error { return nil })
	if removed > 0 || err != nil {
		log.Debug("removed SSH configurations that were left", "directories", removed, "error", err)
	}
	return err
}
