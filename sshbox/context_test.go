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

// setContexts has New and the docker command use a new configuration with these contexts, which are
// pairs of a name and a value for --docker.
func setContexts(t *testing.T, pairs ...string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("no docker command here to make contexts with")
	}
	dir = filepath.Join(t.TempDir(), `a b%h\'`) // a name that needs quotes
	noError(t, os.Mkdir(dir, 0o700))
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	for i := 0; i < len(pairs); i += 2 {
		runDocker(t, "context", "create", pairs[i], "--docker", pairs[i+1])
	}
	return dir
}

// runDocker runs a docker command that must succeed.
func runDocker(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
		t.Fatalf("docker %q: %v, %s", args, err, out)
	}
}

// wantEngineBehind expects New to use the engine behind the proxy, and ssh to reach the box through
// that proxy too, whatever engine its environment names.
func wantEngineBehind(t *testing.T, proxy *engineProxy) {
	t.Helper()
	before := proxy.Passed()
	// Not newBox, which skips the test by the environment alone.
	box, err := New(t.Context(), Config{Image: bareImage, Network: "none"})
	noError(t, err)
	t.Cleanup(func() { box.Close() })
	expect(t, box, "echo $((6*7))", 0, "42\n")
	after := proxy.Passed()
	if after == before {
		t.Error("the box is on another engine")
	}
	p := newSSHClient(t, box)
	p.env = []string{"DOCKER_HOST=unix:///nowhere", "DOCKER_CONFIG=/nowhere",
		"DOCKER_CONTEXT=nowhere", "DOCKER_CERT_PATH=/nowhere", "DOCKER_TLS_VERIFY=",
		"SHELL=/bin/sh"}
	if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "echo in"); out != "in\n" {
		t.Errorf("ssh printed %q", out)
	}
	if proxy.Passed() == after {
		t.Error("ssh has reached the box through another engine")
	}
	noError(t, box.Close())
}

// TestContext shows that New uses the same engine as the docker command: that of DOCKER_HOST, else
// that of DOCKER_CONTEXT, else that of the current context.
func TestContext(t *testing.T) {
	needClients(t)
	one, two, three := newEngineProxy(t), newEngineProxy(t), newEngineProxy(t)
	setContexts(t, "one", "host=unix://"+one.path, "two", "host=unix://"+two.path)
	runDocker(t, "context", "use", "one")
	wantEngineBehind(t, one)
	t.Setenv("DOCKER_CONTEXT", "two")
	wantEngineBehind(t, two)
	odd := filepath.Join(t.TempDir(), `a\ b'\`)
	noError(t, os.Symlink(three.path, odd))
	t.Setenv("DOCKER_HOST", "unix://"+odd)
	wantEngineBehind(t, three)

	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "three")
	if _, err := New(t.Context(), Config{Image: bareImage}); err == nil ||
		!strings.Contains(err.Error(), `"three"`) ||
		!strings.Contains(err.Error(), "docker context ls") {
		t.Errorf("a context that does not exist: %v", err)
	}
	t.Setenv("DOCKER_CONTEXT", "two")
	two.Unplug(true)
	if _, err := (Engine{}).List(t.Context()); err == nil ||
		!strings.Contains(err.Error(), `"two"`) ||
		!strings.Contains(err.Error(), two.path) {
		t.Errorf("a context whose engine does not answer: %v", err)
	}
}

// tlsContext returns the value of docker context create --docker for an engine behind TLS.
func tlsContext(address, keys string) string {
	at := func(name string) string { return filepath.Join(keys, name) }
	return fmt.Sprintf("host=%s,ca=%s,cert=%s,key=%s", address, at("ca.pem"), at("cert.pem"),
		at("key.pem"))
}

// TestContextTLS uses an engine behind TLS, with the keys of the context or of DOCKER_CERT_PATH.
func TestContextTLS(t *testing.T) {
	needClients(t)
	proxy := newEngineProxy(t)
	address, keys := proxy.serveTLS(t)
	setContexts(t, "secure", tlsContext(address, keys), "bare", "host="+address)
	t.Setenv("DOCKER_CONTEXT", "secure")
	wantEngineBehind(t, proxy)
	t.Setenv("DOCKER_CONTEXT", "bare")
	if _, err := (Engine{}).List(t.Context()); err == nil {
		t.Error("the engine answers a client without keys")
	}
	t.Setenv("DOCKER_HOST", address)
	t.Setenv("DOCKER_CERT_PATH", keys)
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	wantEngineBehind(t, proxy)
}

// TestContextSSH uses an engine on a machine that is reached by ssh.
func TestContextSSH(t *testing.T) {
	needClients(t)
	proxy := newEngineProxy(t)
	s := sshdtest.Start(t)
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(s.Address)
	noError(t, err)
	// The docker command takes keys and known hosts from the user's ~/.ssh.
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
	address := fmt.Sprintf("ssh://%s@%s:%s%s", s.User, host, port, proxy.path)
	setContexts(t, "far", "host="+address)
	t.Setenv("DOCKER_CONTEXT", "far")
	wantEngineBehind(t, proxy)
	t.Setenv("DOCKER_HOST", address)
	wantEngineBehind(t, proxy)
}
