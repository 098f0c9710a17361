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

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"golang.org/x/crypto/ssh"
)

// A machine makes places on this machine, by its sshd. Each is reached over a Wire of its own.
type machine struct {
	server *sshdtest.Server
	echo   string
	boxd   string // DialConfig's
}

func newMachine(t *testing.T, boxd string) *machine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the processes of a round are found by /proc: run it on Linux")
	}
	echo := hosttest.Listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(c, c) })
	return &machine{startServer(t), echo.Addr().String(), boxd}
}

func startServer(t *testing.T) *sshdtest.Server {
	return sshdtest.Start(t, "MaxStartups 100", "LogLevel QUIET")
}

func (m *machine) place(r *round) (*place, error) {
	p := &place{server: m.server, echo: m.echo, id: fmt.Sprintf("FAULT_ROUND=%d.%d", os.Getpid(),
		r.seed)}
	if r.fault.restarts {
		p.server = startServer(r.t)
	}
	var err error
	if p.wire, err = NewWire("tcp", "127.0.0.1:0", "tcp", p.server.Address, nil); err != nil {
		return nil, err
	}
	p.dir = filepath.Join(r.files, "box")
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, errors.Join(err, closed(p.wire))
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	config := sshbox.DialConfig{
		Address: p.wire.Address(), User: p.server.User, Signer: p.server.Key,
		HostKey: ssh.FixedHostKey(p.server.HostKey),
		Env:     []string{p.id}, Boxd: m.boxd,
	}
	box, err := sshbox.Dial(ctx, config)
	if err != nil {
		return nil, errors.Join(err, closed(p.wire))
	}
	if program, why := box.Boxd(); (program != "") != (m.boxd != sshbox.NoBoxd) {
		return nil, errors.Join(fmt.Errorf("carried by %q: %s", program, why), box.Close(),
			closed(p.wire))
	}
	p.box = box
	if _, err := os.Stat("/proc/self/syscall"); err != nil && m.boxd == sshbox.NoBoxd {
		p.blind = true
	}
	p.inside = func(script string) error { return exec.Command("sh", "-c", script).Run() }
	p.gone = func() error {
		if r.fault.cause == sandbox.LostRemoved { // boxd could not end its programs
			config.Address = p.server.Address
			if _, err := (sshbox.Machine{DialConfig: config}).Reap(
				context.Background()); err != nil {
				return err
			}
		}
		if left := marked(p.id); len(left) > 0 {
			return fmt.Errorf("processes are left: %v", left)
		}
		if r.fault.restarts {
			p.server.Stop()
		}
		return nil
	}
	return p, nil
}

// A process is a process of a round on this machine.
type process struct {
	pid  int
	name string
	args string
}

// marked returns the processes that have an environment variable.
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
		found = append(found, process{pid, strings.TrimSpace(string(name)),
			strings.ReplaceAll(string(args), "\x00", " ")})
	}
	return found
}

// kill returns a fault that kills the round's processes with these names.
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

// parent returns the process that has started the box's programs: boxd, or the sshd process that
// serves the connection.
func parent(r *round) (pid string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	var out bytes.Buffer
	_, err = r.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo $PPID"}, Stdout: &out})
	return strings.TrimSpace(out.String()), err
}

func (m *machine) faults() []fault {
	return append(append(transportFaults(sandbox.LostConnection), delayed),
		fault{name: "shells killed", kills: true, do: kill("bash")},
		fault{name: "programs killed", kills: true, scripts: true,
			do: kill("seq", "sleep", "cat", "sha256sum", "find", "tar")},
		fault{name: "scripts killed", kills: true, scripts: true, do: kill("sh")},
		fault{name: "sshd killed", cause: sandbox.LostConnection, kills: true,
			do: signalled("KILL", parent)},
		fault{name: "sshd paused", do: paused(parent)})
}

// signalled returns a fault that signals a process of the round.
func signalled(signal string, find func(*round) (pid string, err error)) func(*round,
	*rand.Rand) error {
	return func(r *round, _ *rand.Rand) error {
		pid, err := find(r)
		if err == nil {
			err = exec.Command("kill", "-"+signal, pid).Run()
		}
		return err
	}
}

// paused returns a fault that stops a process of the round for up to two seconds.
func paused(find func(*round) (pid string, err error)) func(*round, *rand.Rand) error {
	return func(r *round, rng *rand.Rand) error {
		pid, err := find(r)
		if err == nil {
			err = exec.Command("kill", "-STOP", pid).Run()
		}
		if err != nil {
			return err
		}
		time.Sleep(upTo(rng, 2*time.Second))
		return exec.Command("kill", "-CONT", pid).Run()
	}
}
