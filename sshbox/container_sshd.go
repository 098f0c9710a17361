package sshbox

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
	"golang.org/x/crypto/ssh"
)

// sshdConfig is the configuration of a container's sshd. It takes one connection, on its standard streams, of one
// user with one key.
const sshdConfig = `HostKey ` + keyDir + `/host_key
AuthorizedKeysFile ` + keyDir + `/authorized_keys
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
HostbasedAuthentication no
GSSAPIAuthentication no
PermitRootLogin prohibit-password
StrictModes no
MaxSessions 100000
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
AllowAgentForwarding no
X11Forwarding no
PermitTunnel no
PermitUserRC no
PermitUserEnvironment no
PrintMotd no
PrintLastLog no
Banner none
UseDNS no
Compression no
ClientAliveInterval 0
TCPKeepAlive no
LogLevel ERROR
PidFile none
Subsystem sftp internal-sftp
SetEnv SHLVL=1`

// scrubbed are the variables that a container's programs would have only because they are reached by SSH.
// SHLVL is there because of SetEnv above, which keeps bash from reading ~/.bashrc before each program.
var scrubbed = []string{"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "MAIL", "SHLVL"}

// keys are those of one container: both are made for it, and the private ones never touch a disk.
type keys struct {
	user ssh.Signer
	host ssh.PublicKey
	pem  []byte // the host's private key
}

func makeKeys() (*keys, error) {
	_, user, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(user)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	host, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, err
	}
	return &keys{user: signer, host: host, pem: pem.EncodeToMemory(block)}, nil
}

// login logs in to the sshd that the container's script becomes.
func (k *keys) login(ctx context.Context, streams *attached, image, user string) (*connection, error) {
	stop := context.AfterFunc(ctx, func() { streams.Close() })
	name, err := k.prepare(streams, image, user)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		streams.Close()
		return nil, err
	}
	config := &ssh.ClientConfig{
		User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(k.user)},
		HostKeyCallback: ssh.FixedHostKey(k.host), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	// Nothing leaves the machine, or the engine's own TLS: the shortest key exchange will do.
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519}
	config.Ciphers = preferredCiphers()
	conn, err := handshake(ctx, streams, "container", config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("log in to the sshd of image %q as %s: %w%s", image, name, err, saying(streams))
	}
	return conn, nil
}

// script is what the container's main process reads: what to do, without comments, and the private key.
func (k *keys) script(user string) []byte {
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.user.PublicKey())))
	lines := []string{"set -- " + shellquote.Quote(user) + " " + shellquote.Quote(public) + " " + shellquote.Quote(sshdConfig)}
	for line := range strings.Lines(containerScript) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	lines = append(lines, ".", string(k.pem)+".", "")
	return []byte(strings.Join(lines, "\n"))
}

// prepare hands the keys over and hears whether the container can be logged in to, and under which name.
func (k *keys) prepare(a *attached, image, user string) (name string, err error) {
	if _, err := a.Write(k.script(user)); err != nil {
		return "", fmt.Errorf("hand the keys to the container: %w", err)
	}
	line, err := a.readLine()
	fields := strings.Fields(line)
	if err != nil || len(fields) < 2 || fields[0] != "sandshell" {
		if strings.Contains(a.said(), "exec /bin/sh failed") { // the init's words
			return "", fmt.Errorf("image %q has no /bin/sh: Config.Server OpenSSH needs a POSIX shell and OpenSSH's sshd in the image; Boxd, the default, does not", image)
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("its shell said %q%s", line, saying(a))
		}
		return "", fmt.Errorf("prepare the sshd of image %q: %w", image, err)
	}
	switch fields[1] {
	case "ok":
		return strings.TrimPrefix(line, "sandshell ok "), nil
	case "no-sshd":
		return "", fmt.Errorf("image %q has no sshd: leave Config.Server at Boxd, which needs none, or put OpenSSH's in the image, "+
			"for example RUN apt-get update && apt-get install -y openssh-server (Debian, Ubuntu), apk add openssh (Alpine)", image)
	case "no-user":
		return "", fmt.Errorf("image %q has no user %q: sshd needs an entry in its /etc/passwd; "+
			"add one (RUN useradd -m NAME), or give another Config.User", image, user)
	case "no-shell":
		return "", fmt.Errorf("user %q of image %q may not log in: its shell in /etc/passwd is %s; "+
			"give it a shell (RUN usermod -s /bin/sh NAME), or give another Config.User", user, image, fields[len(fields)-1])
	case "no-files":
		return "", fmt.Errorf("prepare the sshd of image %q: cannot write to %s%s", image, keyDir, saying(a))
	}
	return "", fmt.Errorf("prepare the sshd of image %q: its shell said %q", image, line)
}

// saying quotes what the container has said on standard error, if anything.
func saying(a *attached) string {
	if said := a.said(); said != "" {
		return fmt.Sprintf("; it said %q", said)
	}
	return ""
}
