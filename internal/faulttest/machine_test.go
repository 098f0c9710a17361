package faulttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/hosttest"
	"github.com/sandshell/sandshell/internal/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"golang.org/x/crypto/ssh"
)

// A machine is this one, reached through an sshd. Each place has a wire of its own.
type machine struct {
	server *sshdtest.Server
	echo   string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the processes of a round are found by /proc")
	}
	echo := hosttest.Listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(c, c) })
	return &machine{sshdtest.Start(t, "MaxStartups 100", "LogLevel QUIET"), echo.Addr().String()}
}

func (m *machine) place(r *round) (*place, error) {
	wire, err := NewWire("tcp", "127.0.0.1:0", "tcp", m.server.Address, nil)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.files, "box")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(err, closed(wire))
	}
	p := &place{wire: wire, dir: dir, echo: m.echo, id: fmt.Sprintf("FAULT_ROUND=%d.%d", os.Getpid(), r.seed)}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	box, err := sshbox.Dial(ctx, sshbox.DialConfig{
		Address: wire.Address(), User: m.server.User, Signer: m.server.Key, HostKey: ssh.FixedHostKey(m.server.HostKey), Env: []string{p.id},
		Boxd: sshbox.NoBoxd, // the plain way
	})
	if err != nil {
		return nil, errors.Join(err, closed(wire))
	}
	p.box = box
	p.gone = func() error {
		if left := marked(p.id); len(left) > 0 {
			return fmt.Errorf("processes are left: %v", left)
		}
		return nil
	}
	return p, nil
}

// A process is one of a round's on this machine.
type process struct {
	pid  int
	name string
	args string
}

// marked finds the processes that have an environment variable.
func marked(variable string) (found []process) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), variable) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		found = append(found, process{pid, strings.TrimSpace(string(name)), strings.ReplaceAll(string(args), "\x00", " ")})
	}
	return found
}

// kill kills the round's processes of these names.
func kill(names ...string) func(*round, *rand.Rand) error {
	return func(r *round, _ *rand.Rand) error {
		for _, p := range marked(r.id) {
			if slices.Contains(names, p.name) {
				exec.Command("kill", "-KILL", strconv.Itoa(p.pid)).Run() // it may have ended
			}
		}
		return nil
	}
}

// serving is the process of sshd's that serves the round's connection.
func serving(r *round) (pid string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	var out bytes.Buffer
	_, err = r.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo $PPID"}, Stdout: &out})
	return strings.TrimSpace(out.String()), err
}

func (m *machine) faults() []fault {
	all := append(transportFaults(true), delayed)
	for i := range all {
		all[i].cuts = false
	}
	return append(all,
		fault{name: "shells killed", kills: true, do: kill("bash")},
		fault{name: "programs killed", kills: true, scripts: true, do: kill("seq", "sleep", "cat", "sha256sum", "find", "tar")},
		fault{name: "scripts killed", kills: true, scripts: true, do: kill("sh")},
		fault{name: "sshd killed", lost: true, kills: true, do: func(r *round, _ *rand.Rand) error {
			pid, err := serving(r)
			if err == nil {
				err = exec.Command("kill", "-KILL", pid).Run()
			}
			return err
		}},
		fault{name: "sshd paused", do: func(r *round, rng *rand.Rand) error {
			pid, err := serving(r)
			if err == nil {
				err = exec.Command("kill", "-STOP", pid).Run()
			}
			if err != nil {
				return err
			}
			time.Sleep(upTo(rng, 2*time.Second))
			return exec.Command("kill", "-CONT", pid).Run()
		}})
}
