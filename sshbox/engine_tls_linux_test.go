package sshbox

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/moby/moby/client"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A dockerd that asks for keys is reached by a client that has them and by a context that does, and
// not by anybody else, nor is another taken for it.
func TestEngineTLS(t *testing.T) {
	testenv.NeedsAll(t, "it starts an engine of its own; TestContextTLS has this machine's "+
		"behind TLS")
	haveClients(t)
	keys, _ := keysForTLS(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer l.Close()
	e := &restartable{keys: keys}
	e.tcp, err = l.(*net.TCPListener).File()
	noError(t, err)
	defer e.tcp.Close()
	e.first(t)
	address := "tcp://" + l.Addr().String()
	works := func(c Config) {
		t.Helper()
		c.Image, c.Network = bareImage, "none"
		box, err := New(limit(t), c)
		noError(t, err)
		defer box.Close()
		does(t, box, "echo $((6*7))", 0, "42\n")
		there, err := e.client.ContainerList(t.Context(), client.ContainerListOptions{})
		noError(t, err)
		if len(there.Items) != 1 || there.Items[0].ID != box.ContainerID() {
			t.Errorf("the box is on another engine: %+v", there.Items)
		}
		p := personOf(t, box)
		if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "echo in"); out != "in\n" {
			t.Errorf("ssh says %q", out)
		}
		noError(t, box.Close())
	}
	others, _ := keysForTLS(t)
	given := func(ca, own string) *client.Client {
		d, err := client.New(client.WithHost(address),
			client.WithTLSClientConfig(filepath.Join(ca, "ca.pem"), filepath.Join(own, "cert.pem"),
				filepath.Join(own, "key.pem")))
		noError(t, err)
		t.Cleanup(func() { d.Close() })
		return d
	}
	contexts(t, "secure", withKeys(address, keys), "bare", "host="+address, "others",
		withKeys(address, others))
	for _, name := range []string{"bare", "others"} {
		t.Setenv("DOCKER_CONTEXT", name)
		if list, err := (Engine{}).List(t.Context()); err == nil {
			t.Errorf("context %s: %v", name, list)
		}
	}
	t.Setenv("DOCKER_CONTEXT", "secure")
	works(Config{})
	for _, wrong := range [][]string{{keys, others}, {others, keys}} {
		if list, err := (Engine{Docker: given(wrong[0], wrong[1])}).List(t.Context()); err == nil {
			t.Errorf("with the keys of another engine: %v", list)
		}
	}
	// ssh takes the keys of the context, which is for that address
	works(Config{Docker: given(keys, keys)})
	e.empty(t)
}
