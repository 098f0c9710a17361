// Package guests writes what a person's own SSH clients need to reach a box, beside the program
// that has it: boxd takes a key of theirs as a guest's.
package guests

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

// A Host is a box with boxd.
type Host interface {
	// AddGuest lets the holder of a key log in as a guest, and returns the key that boxd is known
	// by.
	AddGuest(ctx context.Context, key ssh.PublicKey) (hostKey ssh.PublicKey, err error)
}

// prefix begins the names of these directories in os.TempDir.
const prefix = "sandshell-sshconfig-"

// A Config is the directory for people's clients of one box, once somebody has asked for it.
type Config struct {
	mu     sync.Mutex
	dir    *tempdir.Dir
	making chan struct{} // closed when the Path that makes dir has returned; nil if none does
	closed bool
}

// Path returns the path of a configuration for OpenSSH in which the box has that name, and is
// reached by the command. After Close it fails with os.ErrClosed.
func (g *Config) Path(ctx context.Context, h Host, name string, command []string) (string, error) {
	for {
		path, making, err := g.begin()
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
	dir, err := newDir(ctx, h, name, command)
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.making)
	g.making = nil
	if err == nil && g.closed {
		dir.Remove()
		err = os.ErrClosed
	}
	if err != nil {
		return "", err
	}
	g.dir = dir
	return configIn(dir), nil
}

// begin returns the path if it is there, and making if another Path makes it. Else this one is to.
func (g *Config) begin() (path string, making chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return "", nil, os.ErrClosed
	case g.dir != nil:
		return configIn(g.dir), nil, nil
	case g.making != nil:
		return "", g.making, nil
	}
	g.making = make(chan struct{})
	return "", nil, nil
}

func configIn(dir *tempdir.Dir) string { return filepath.Join(dir.Path, "config") }

// newDir makes a key, lets its holder in, and writes the directory.
func newDir(ctx context.Context, h Host, name string, command []string) (*tempdir.Dir, error) {
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
	dir, err := tempdir.Make(prefix)
	if err != nil {
		return nil, err
	}
	if err := write(dir.Path, name, command, pem.EncodeToMemory(block), hostKey); err != nil {
		dir.Remove()
		return nil, err
	}
	return dir, nil
}

// write writes the files of a configuration.
func write(dir, name string, command []string, key []byte, hostKey ssh.PublicKey) error {
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

// Close removes the directory. It does not wait for a Path under way, which fails.
func (g *Config) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.dir != nil {
		g.dir.Remove()
	}
}

// Reap removes the directories of programs that were killed: private keys are in them, even if no
// box takes those any more.
func Reap(log *slog.Logger) error {
	removed, err := tempdir.Reap(prefix, func(string) error { return nil })
	if removed > 0 || err != nil {
		log.Debug("removed SSH configurations that were left", "directories", removed, "error", err)
	}
	return err
}
