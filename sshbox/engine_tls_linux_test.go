package sshbox

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/moby/moby/client"

	"github.com/sandshell/sandshell/internal/test/enginetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestEngineTLS starts a dockerd behind TLS. A client and a context with its keys reach it. Without
// keys, or with those of another engine, they do not; nor do they accept another engine.
func TestEngineTLS(t *testing.T) {
	testenv.NeedsAll(t, "it starts an engine of its own; TestContextTLS has the engine of this "+
		"machine behind TLS")
	needClients(t)
	keys, _ := keysForTLS(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer l.Close()
	tcp, err := l.(*net.TCPListener).File()
	noError(t, err)
	defer tcp.Close()
	e := enginetest.Start(t, enginetest.Config{TCP: tcp, Keys: keys})
	address := "tcp://" + l.Addr().String()
	makesBox := func(c Config) {
		t.Helper()
		c.Image, c.Network = bareImage, "none"
		box, err := New(testContext(t), c)
		noError(t, err)
		defer box.Close()
		expect(t, box, "echo $((6*7))", 0, "42\n")
		list, err := e.Client.ContainerList(t.Context(), client.ContainerListOptions{})
		noError(t, err)
		if len(list.Items) != 1 || list.Items[0].ID != box.ContainerID() {
			t.Errorf("the box is on another engine: %+v", list.Items)
		}
		p := newSSHClient(t, box)
		if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "echo in"); out != "in\n" {
			t.Errorf("ssh printed %q", out)
		}
		noError(t, box.Close())
	}
	others, _ := keysForTLS(t)
	clientWith := func(ca, own string) *client.Client {
		d, err := client.New(client.WithHost(address),
			client.WithTLSClientConfig(filepath.Join(ca, "ca.pem"), filepath.Join(own, "cert.pem"),
				filepath.Join(own, "key.pem")))
		noError(t, err)
		t.Cleanup(func() { d.Close() })
		return d
	}
	setContexts(t, "secure", tlsContext(address, keys), "bare", "host="+address, "others",
		tlsContext(address, others))
	for _, name := range []string{"bare", "others"} {
		t.Setenv("DOCKER_CONTEXT", name)
		if list, err := (Engine{}).List(t.Context()); err == nil {
			t.Errorf("context %s reaches the engine: %v", name, list)
		}
	}
	t.Setenv("DOCKER_CONTEXT", "secure")
	makesBox(Config{})
	for _, wrong := range [][]string{{keys, others}, {others, keys}} {
		d := clientWith(wrong[0], wrong[1])
		if list, err := (Engine{Docker: d}).List(t.Context()); err == nil {
			t.Errorf("a client with the keys of another engine reaches it: %v", list)
		}
	}
	// The client has the keys. ssh takes them from the context that has the same address.
	makesBox(Config{Docker: clientWith(keys, keys)})
	e.WantEmpty(t)
}
