package sshbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// forwardBySSH has ssh forward connections both ways.
func forwardBySSH(t *testing.T, box *DockerSSHBox) {
	p := newSSHClient(t, box)
	program, err := makeEchoServer()
	noError(t, err)
	file := filepath.Join(t.TempDir(), "server")
	noError(t, os.WriteFile(file, program, 0o755))
	noError(t, box.CopyTo(t.Context(), file, "/tmp/server"))
	j, err := box.Background(t.Context(), "exec /tmp/server /tmp/socket")
	noError(t, err)
	defer j.Kill(context.Background())
	var printed string
	waitFor(t, "the server", func() bool {
		data, _, err := j.Logs(t.Context(), 0)
		noError(t, err)
		printed = string(data)
		return strings.Contains(printed, " .")
	})
	mine := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(c, c) })
	// A short name, without characters that ssh expands.
	dir, err := os.MkdirTemp("/tmp", "sandshell-")
	noError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	local, socket := freeAddress(t), filepath.Join(dir, "s")
	lines, stop := p.start("ssh", "-v", "-N", "-F", "{F}", "-o", "ExitOnForwardFailure=yes", "-L",
		local+":"+strings.Fields(printed)[2], "-L", socket+":/tmp/socket",
		"-R", "0:"+mine.Addr().String(), "{NAME}")
	defer stop()
	// ssh sets up the remote forwarding last.
	remote := strings.Fields(waitLine(t, lines, "Allocated port"))[2]
	wantEcho := func(conn net.Conn, err error) {
		t.Helper()
		noError(t, err)
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(testenv.Limit))
		_, err = io.WriteString(conn, "there and back")
		noError(t, errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite()))
		if got, err := io.ReadAll(conn); string(got) != "there and back" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	for range 3 {
		wantEcho(net.Dial("tcp", local))
		wantEcho(net.Dial("unix", socket))
		wantEcho(box.Dial(t.Context(), "tcp", "127.0.0.1:"+remote))
	}
	stop()
	waitFor(t, "the end of what was forwarded", func() bool {
		conn, err := box.Dial(t.Context(), "tcp", "127.0.0.1:"+remote)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}
