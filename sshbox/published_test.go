package sshbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// TestContainerPublish reaches a server in a box through the port that the engine has published for
// it.
func TestContainerPublish(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	for _, c := range []Config{{Publish: []int{0}}, {Publish: []int{65536}},
		{Publish: []int{80}, Network: "none"}} {
		if _, err := New(t.Context(), c); err == nil ||
			!strings.Contains(err.Error(), "Config.Publish") {
			t.Errorf("%v: %v", c.Publish, err)
		}
	}
	box, err := New(t.Context(), Config{Image: dockertest.Busybox, Publish: []int{8000, 8001}})
	noError(t, err)
	defer box.Close()
	ports, err := box.Published(t.Context())
	noError(t, err)
	if len(ports) != 2 || ports[8000] == 0 || ports[8001] == 0 || ports[8000] == ports[8001] {
		t.Fatalf("the ports are %v", ports)
	}
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "hello"), []byte("greetings"), 0o644))
	noError(t, box.CopyTo(t.Context(), filepath.Join(dir, "hello"), "/tmp/hello"))
	_, err = box.Background(t.Context(), "while nc -l -p 8000 </tmp/hello; do :; done")
	noError(t, err)
	waitFor(t, "the server's answer", func() bool {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", ports[8000]),
			10*time.Second)
		if err != nil {
			return false
		}
		defer conn.Close()
		got, _ := io.ReadAll(conn)
		return string(got) == "greetings"
	})
}
