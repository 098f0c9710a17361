package sshbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// echoServer is a program that sends back what it receives. It listens on a port of loopback, which
// it prints, and on the socket that its argument names.
const echoServer = `package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	unix, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("listening on", tcp.Addr(), ".")
	go serve(tcp)
	serve(unix)
}

func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			io.Copy(c, c)
			c.Close()
		}()
	}
}
`

// makeEchoServer builds echoServer once, and returns the program.
var makeEchoServer = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sandshell-echo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(echoServer), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", "echo", "main.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO111MODULE=off", "GOFLAGS=", "GOOS=linux",
		"CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "echo"))
})

// dialServer starts an echo server in the box, and dials it.
func dialServer(t *testing.T, box sandbox.Sandbox, dir string) {
	t.Helper()
	if _, err := box.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err,
		syscall.ECONNREFUSED) {
		t.Errorf("Dial of a port on which nothing listens: %v", err)
	}
	if dir == "/dev/shm" {
		t.Log("no server: the user can write only to a directory whose programs cannot be executed")
		return
	}
	program, err := makeEchoServer()
	noError(t, err)
	file := filepath.Join(t.TempDir(), "server")
	noError(t, os.WriteFile(file, program, 0o755))
	noError(t, box.CopyTo(t.Context(), file, dir+"/server"))
	j, err := box.Background(t.Context(), "exec "+dir+"/server "+dir+"/socket")
	noError(t, err)
	var printed string
	waitFor(t, "the server", func() bool {
		data, _, err := j.Logs(t.Context(), 0)
		noError(t, err)
		printed = string(data)
		return strings.Contains(printed, " .")
	})
	for network, address := range map[string]string{"tcp": strings.Fields(printed)[2],
		"unix": dir + "/socket"} {
		conn, err := box.Dial(t.Context(), network, address)
		noError(t, err)
		conn.SetDeadline(time.Now().Add(testenv.Limit))
		_, err = io.WriteString(conn, "there and back")
		noError(t, errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite()))
		if got, err := io.ReadAll(conn); string(got) != "there and back" || err != nil {
			t.Errorf("%s: got %q, %v", network, got, err)
		}
		conn.Close()
	}
	noError(t, j.Kill(t.Context()))
}
