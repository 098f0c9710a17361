package sshbox

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// A HostKeyError says that the machine at an address has not shown a known host key. Neither a
// password nor a signature has been sent to the machine.
type HostKeyError struct {
	Address string
	Key     ssh.PublicKey         // the key that the machine has shown
	Known   []knownhosts.KnownKey // the machine's known keys; empty if the machine is not known
	Files   []string              // the known_hosts files that were read
	// Err is the error of DialConfig.HostKey, or says that the key is revoked.
	Err error
}

// Error says which key the machine has shown, which one is known, and what to do.
func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s %s", e.Key.Type(), ssh.FingerprintSHA256(e.Key))
	if e.Err != nil {
		return fmt.Sprintf("host key of %s refused: it has shown %s: %v", e.Address, shown, e.Err)
	}
	name := knownhosts.Normalize(e.Address)
	if len(e.Known) > 0 {
		known := e.Known[0]
		return fmt.Sprintf("host key of %s has changed: it has shown %s, but %s:%d has %s %s. "+
			"Somebody may be listening in. "+
			"If you know why it has changed, run ssh-keygen -R '%s' and add the new key",
			e.Address, shown, known.Filename, known.Line, known.Key.Type(),
			ssh.FingerprintSHA256(known.Key), name)
	}
	host, port, _ := net.SplitHostPort(e.Address)
	where := "there is no known_hosts file"
	if len(e.Files) > 0 {
		where = "it is not in " + strings.Join(e.Files, ", ")
	}
	return fmt.Sprintf("host key of %s is unknown: it has shown %s, and %s. If that is its "+
		"fingerprint: "+
		"ssh-keyscan -p %s %s >> ~/.ssh/known_hosts, or set DialConfig.HostKey to ssh.FixedHostKey",
		e.Address, shown, where, port, host)
}

// Unwrap returns e.Err.
func (e *HostKeyError) Unwrap() error { return e.Err }

// hostKeys checks host keys for one connection.
type hostKeys struct {
	callback  ssh.HostKeyCallback
	fromFiles bool // callback reads known_hosts; it is not DialConfig.HostKey
	files     []string
	err       atomic.Pointer[HostKeyError]
}

func (c DialConfig) hostKeys(ctx context.Context) (*hostKeys, error) {
	if c.HostKey != nil {
		check := func(host string, remote net.Addr, key ssh.PublicKey) error {
			ask := func() (struct{}, error) { return struct{}{}, c.HostKey(host, remote, key) }
			_, err := callback(ctx, "DialConfig.HostKey", ask, nil)
			return err
		}
		return &hostKeys{callback: check}, nil
	}
	files := c.KnownHosts
	if files == nil {
		files = defaultKnownHosts()
	}
	callback, err := readKnownHosts(files)
	if err != nil {
		return nil, fmt.Errorf("DialConfig.KnownHosts: %w", err)
	}
	return &hostKeys{callback: callback, fromFiles: true, files: files}, nil
}

func defaultKnownHosts() (files []string) {
	var candidates []string
	if home, err := os.UserHomeDir(); err == nil {
		candidates = append(candidates, filepath.Join(home, ".ssh", "known_hosts"))
	}
	for _, file := range append(candidates, "/etc/ssh/ssh_known_hosts") {
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
	}
	return files
}

// readKnownHosts reads known_hosts files. x/crypto refuses a whole file for one line that it does
// not understand, such as a key of an unknown kind. readKnownHosts leaves such lines out, as
// OpenSSH does.
func readKnownHosts(files []string) (ssh.HostKeyCallback, error) {
	callback, err := knownhosts.New(files...)
	var path *fs.PathError
	if err == nil || errors.As(err, &path) {
		return callback, err
	}
	dir, err := os.MkdirTemp("", "sandshell-known-hosts-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	original := map[string]string{}
	var copies []string
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := bytes.Split(data, []byte("\n"))
		for i, line := range lines {
			if _, _, _, _, _, err := ssh.ParseKnownHosts(line); err != nil {
				lines[i] = nil // an empty line, so that the other lines keep their numbers
			}
		}
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, bytes.Join(lines, []byte("\n")), 0o600); err != nil {
			return nil, err
		}
		copies = append(copies, name)
		original[name] = file
	}
	callback, err = knownhosts.New(copies...)
	if err != nil {
		return nil, err
	}
	return func(name string, remote net.Addr, key ssh.PublicKey) error {
		err := callback(name, remote, key)
		var known *knownhosts.KeyError
		if errors.As(err, &known) {
			for i := range known.Want {
				known.Want[i].Filename = original[known.Want[i].Filename]
			}
		}
		return err
	}, nil
}

// check is the ssh.HostKeyCallback. It stores the error, because x/crypto passes on only its text.
func (k *hostKeys) check(address string, remote net.Addr, key ssh.PublicKey) error {
	err := k.callback(address, withPort(remote), key)
	if err == nil {
		return nil
	}
	wrong := &HostKeyError{Address: address, Key: key, Files: k.files}
	var known *knownhosts.KeyError
	if k.fromFiles && errors.As(err, &known) {
		wrong.Known = known.Want
	} else {
		wrong.Err = err
	}
	k.err.Store(wrong)
	return wrong
}

// algorithms returns the kinds of the machine's known keys. A server with several host keys shows a
// key of the first kind that the client asks for. If that key were not in known_hosts, the machine
// would seem to be the wrong one. If the machine is not known, algorithms returns nil, which stands
// for the defaults.
func (k *hostKeys) algorithms(address string, remote net.Addr) []string {
	if !k.fromFiles {
		return nil
	}
	unknown, _ := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	var known *knownhosts.KeyError
	if !errors.As(k.callback(address, withPort(remote), unknown), &known) || len(known.Want) == 0 {
		return nil
	}
	supported := ssh.SupportedAlgorithms().HostKeys
	var kinds []string
	for _, w := range known.Want {
		if isAuthority(w) {
			// The authority may have signed a key of any kind.
			for _, a := range supported {
				if strings.Contains(a, "-cert-v01@") {
					kinds = append(kinds, a)
				}
			}
			continue
		}
		switch kind := w.Key.Type(); kind {
		case ssh.KeyAlgoRSA: // one kind of key, several algorithms
			kinds = append(kinds, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			kinds = append(kinds, kind)
		}
	}
	var uniq []string
	for _, kind := range kinds {
		if !slices.Contains(uniq, kind) && slices.Contains(supported, kind) {
			uniq = append(uniq, kind)
		}
	}
	return uniq
}

// isAuthority reports whether a line of known_hosts has a certificate authority. x/crypto does not
// say.
func isAuthority(k knownhosts.KnownKey) bool {
	data, err := os.ReadFile(k.Filename)
	if err != nil {
		return false
	}
	lines := bytes.Split(data, []byte("\n"))
	return 0 < k.Line && k.Line <= len(lines) &&
		bytes.HasPrefix(bytes.TrimSpace(lines[k.Line-1]), []byte("@cert-authority"))
}

// withPort returns remote if it is an address with a port, and 0.0.0.0:0 if not. x/crypto requires
// a port, though it looks keys up by name, and DialContext may return any kind of connection.
func withPort(remote net.Addr) net.Addr {
	if remote != nil {
		if _, _, err := net.SplitHostPort(remote.String()); err == nil {
			return remote
		}
	}
	return &net.TCPAddr{IP: net.IPv4zero}
}
