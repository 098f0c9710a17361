//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The roles in which this program runs again, as pid 1 of namespaces.
const (
	rolePlane  = "plane"  // the control plane: one; it starts the nodes
	roleNode   = "node"   // a node, in namespaces within those
	roleUnpack = "unpack" // a containerd that takes images in
)

const here = "/run/kube" // where each of them has the cluster's directory

// inNamespaces is this program in one of its roles, in namespaces of its own: when it ends, all
// that was started in them does, and their mounts and interfaces go.
func inNamespaces(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{role}, args...)...)
	cmd.Dir = "/"
	// its own; another one may be below a directory that is hidden
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, // a terminal's ^C is for the program outside
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	return cmd
}

// privateMounts hides the machine's mounts and directories that would be written to, and has dir at
// /run/kube.
func privateMounts(dir string, empty ...string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// it may be below one of those that are hidden
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	for _, e := range empty {
		if err := syscall.Mount("tmpfs", e, "tmpfs", 0, "mode=1777"); err != nil {
			return fmt.Errorf("mount a tmpfs at %s: %w", e, err)
		}
	}
	if err := os.Mkdir(here, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), here, "", syscall.MS_BIND,
		""); err != nil {
		return fmt.Errorf("bind %s: %w", dir, err)
	}
	return nil
}

// bind mounts a directory of the cluster's somewhere else.
func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(filepath.Join(here, from), to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", to, err)
	}
	return nil
}

// ip runs the program of that name.
func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}

// connectable waits until a server listens at a Unix socket, 30 s.
func connectable(socket string) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", socket)
		if err == nil {
			return c.Close()
		}
		if time.Since(begin) > 30*time.Second {
			return err
		}
	}
}

// logged starts a part, whose output goes to log/NAME.log, behind what is there.
func logged(name, program string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(here, "log", name+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd, nil
}
