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

// The roles in which this program runs as pid 1 of namespaces.
const (
	rolePlane  = "plane"  // the control plane, which starts the nodes
	roleNode   = "node"   // a node, in namespaces inside those of the control plane
	roleUnpack = "unpack" // a containerd that imports images
)

const here = "/run/kube" // the cluster's directory in each of them

// inNamespaces returns a command that runs this program in a role, in namespaces of its own. When
// it ends, all programs in the namespaces end, and their mounts and interfaces are removed.
func inNamespaces(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{role}, args...)...)
	cmd.Dir = "/"
	// its own; another one may be below a directory that is hidden
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, // so that a terminal's ^C reaches only the program outside
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	return cmd
}

// privateMounts hides the machine's mounts, and puts empty directories over those that the cluster
// writes to. It mounts dir at /run/kube.
func privateMounts(dir string, empty ...string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// dir may be below one of the directories that are hidden.
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

// bind mounts a directory at a second path.
func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(filepath.Join(here, from), to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", to, err)
	}
	return nil
}

// ip runs the program ip.
func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}

// connectable waits up to 30 s until a server listens on a Unix socket.
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

// logged starts a part and appends its output to log/NAME.log.
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
