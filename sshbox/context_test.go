package sshbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
)

// contexts makes the docker command's configuration that New and that command look at, with these
// contexts: pairs of a name and what --docker takes.
func contexts(t *testing.T, pairs ...string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("no docker command here to make contexts with")
	}
	dir = filepath.Join(t.TempDir(), `a b%h\'`) // to be quoted
	noError(t, os.Mkdir(dir, 0o700))
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	for i := 0; i < len(pairs); i += 2 {
		dockerCommand(t, "context", "create", pairs[i], "--docker", pairs[i+1])
	}
	return dir
}

func dockerCommand(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
		t.Fatalf("docker %q: %v, %s", args, err, out)
	}
}

// reached expects New to use the engine behind the cable, and a person's ssh to reach the box
// through it, in whatever environment.
func reached(t *testing.T, c *cable) {
	t.Helper()
	before := c.Passed()
	// not newBox, which asks for an engine by the environment alone
	box, err := New(t.Context(), Config{Image: bareImage, Network: "none"})
	noError(t, err)
	t.Cleanup(func() { box.Close() })
	does(t, box, "echo $((6*7))", 0, "42\n")
	after := c.Passed()
	if after == before {
		t.Error("the box is on another engine")
	}
	p := personOf(t, box)
	p.env = []string{"DOCKER_HOST=unix:///nowhere", "DOCKER_CONFIG=/nowhere",
		"DOCKER_CONTEXT=nowhere", "DOCKER_CERT_PATH=/nowhere", "DOCKER_TLS_VERIFY=",
		"SHELL=/bin/sh"}
	if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "echo in"); out != "in\n" {
		t.Errorf("ssh says %q", out)
	}
	if c.Passed() == after {
		t.Error("ssh has reached the box by another engine")
	}
	noError(t, box.Close())
}

// The engine is the one that the docker command would use: DOCKER_HOST before DOCKER_CONTEXT before
// the current context.
func TestContext(t *testing.T) {
	haveClients(t)
	one, two, three := newCable(t), newCable(t), newCable(t)
	contexts(t, "one", "host=unix://"+one.path, "two", "host=unix://"+two.path)
	dockerCommand(t, "context", "use", "one")
	reached(t, one)
	t.Setenv("DOCKER_CONTEXT", "two")
	reached(t, two)
	odd := filepath.Join(t.TempDir(), `a\ b'\`)
	noError(t, os.Symlink(three.path, odd))
	t.Setenv("DOCKER_HOST", "unix://"+odd)
	reached(t, three)

	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "three")
	if _, err := New(t.Context(), Config{Image: bareImage}); err == nil ||
		!strings.Contains(err.Error(), `"three"`) ||
		!strings.Contains(err.Error(), "docker context ls") {
		t.Errorf("no such context: %v", err)
	}
	t.Setenv("DOCKER_CONTEXT", "two")
	two.Unplug(true)
	if _, err := (Engine{}).List(t.Context()); err == nil ||
		!strings.Contains(err.Error(), `"two"`) ||
		!strings.Contains(err.Error(), two.path) {
		t.Errorf("nobody answers there: %v", err)
	}
}

// withKeys is what docker context create --docker takes of an engine behind TLS.
func withKeys(address, keys string) string {
	at := func(name string) string { return filepath.Join(keys, name) }
	return fmt.Sprintf("host=%s,ca=%s,cert=%s,key=%s", address, at("ca.pem"), at("cert.pem"),
		at("key.pem"))
}

// An engine behind TLS: the keys come from the context, or from DOCKER_CERT_PATH.
func TestContextTLS(t *testing.T) {
	haveClients(t)
	c := newCable(t)
	address, keys := c.serveTLS(t)
	contexts(t, "secure", withKeys(address, keys), "bare", "host="+address)
	t.Setenv("DOCKER_CONTEXT", "secure")
	reached(t, c)
	t.Setenv("DOCKER_CONTEXT", "bare")
	if _, err := (Engine{}).List(t.Context()); err == nil {
		t.Error("without keys")
	}
	t.Setenv("DOCKER_HOST", address)
	t.Setenv("DOCKER_CERT_PATH", keys)
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	reached(t, c)
}

// An engine on a machine that one can log in to.
func TestContextSSH(t *testing.T) {
	haveClients(t)
	c := newCable(t)
	s := sshdtest.Start(t)
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(s.Address)
	noError(t, err)
	// The docker command leaves it to the user's ~/.ssh to know keys and hosts.
	known := knownhosts.Line([]string{knownhosts.Normalize(s.Address)}, s.HostKey) + "\n"
	config := fmt.Sprintf("Host *\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile "+
		"%s/known\nStrictHostKeyChecking yes\nHostKeyAlgorithms %s\n", s.KeyFile, dir,
		ssh.KeyAlgoED25519)
	real, err := exec.LookPath("ssh")
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(dir, "known"), []byte(known), 0o600))
	noError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600))
	noError(t, os.WriteFile(filepath.Join(dir, "ssh"),
		[]byte(fmt.Sprintf("#!/bin/sh\nexec %s -F %s/config \"$@\"\n", real, dir)), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	address := fmt.Sprintf("ssh://%s@%s:%s%s", s.User, host, port, c.path)
	contexts(t, "far", "host="+address)
	t.Setenv("DOCKER_CONTEXT", "far")
	reached(t, c)
	t.Setenv("DOCKER_HOST", address)
	reached(t, c)
}
