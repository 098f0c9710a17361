//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A cluster is the part of a cluster that is outside of its namespaces.
type cluster struct {
	state  string // the cluster's directory, which is locked while this program lives
	lock   *os.File
	plane  *exec.Cmd
	orders io.WriteCloser // the control plane's standard input, with which it ends
	ready  chan struct{}  // closed when the nodes are ready
	ended  chan error     // gets the control plane's end
}

// startLimit bounds the time until the nodes are ready. It takes 20 s if forty programs share two
// processors.
const startLimit = 3 * time.Minute

// up starts a cluster. Even if it fails, the caller has to call down on a cluster that it returns.
func up(o options) (*cluster, error) {
	if err := check(); err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	programs, err := built(cache)
	if err != nil {
		return nil, err
	}
	images, err := unpacked(cache, programs, o.images)
	if err != nil {
		return nil, err
	}
	sweep(cache)
	c := &cluster{}
	if c.state, c.lock, err = newState(cache); err != nil {
		return nil, err
	}
	return c, c.start(o, programs, images)
}

func (c *cluster) start(o options, programs, images string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close() // the control plane has a copy
	if err := c.files(o, programs, images, listener.Addr().String()); err != nil {
		return err
	}
	if err := makeGroups(c.group(), o.Nodes); err != nil {
		return err
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer file.Close()
	c.plane = inNamespaces(rolePlane, c.state)
	c.plane.Stderr = os.Stderr
	c.plane.ExtraFiles = []*os.File{file}
	if c.orders, err = c.plane.StdinPipe(); err != nil {
		return err
	}
	answers, err := c.plane.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.plane.Start(); errors.Is(err, syscall.EPERM) {
		c.plane = nil
		return lacksError("the right to make namespaces (CAP_SYS_ADMIN)")
	} else if err != nil {
		c.plane = nil
		return err
	}
	c.ready, c.ended = make(chan struct{}), make(chan error, 1)
	go func() {
		lines := bufio.NewReader(answers)
		if line, err := lines.ReadString('\n'); err == nil && line == "ready\n" {
			close(c.ready)
			io.Copy(os.Stdout, lines)
		}
		c.ended <- c.plane.Wait()
	}()
	return nil
}

// serve passes on orders until standard input or the cluster ends, or a signal arrives.
func (c *cluster) serve(lines <-chan string, signals <-chan os.Signal) error {
	ready, late := c.ready, time.After(startLimit)
	for {
		select {
		case <-ready:
			ready, late = nil, nil
			fmt.Println("KUBECONFIG=" + c.kubeconfig())
		case line, more := <-lines:
			if !more {
				return nil
			}
			if _, err := fmt.Fprintln(c.orders, line); err != nil {
				return err
			}
		case <-signals:
			return nil
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("the cluster has ended by itself: %v; its logs end with:\n%s", err,
				c.logs())
		case <-late:
			return fmt.Errorf("nodes not ready after %v; the logs end with:\n%s", startLimit,
				c.logs())
		}
	}
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.state, "pki", "admin.kubeconfig") }

// down ends the cluster and removes its files and control groups.
func (c *cluster) down() error {
	if c.plane != nil {
		c.orders.Close()
		c.plane.Process.Kill()
		<-c.ended // then its pid namespace is empty
	}
	err := errors.Join(removeGroups(c.group()), os.RemoveAll(c.state))
	c.lock.Close()
	return err
}

// group returns the name of the cluster's control groups in /sys/fs/cgroup.
func (c *cluster) group() string { return "sandshell-kube-" + filepath.Base(c.state) }

// logs returns the last lines of the parts' logs.
func (c *cluster) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(c.state, "log", "*.log"))
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			lines := strings.SplitAfter(string(b), "\n")
			fmt.Fprintf(&all, "--- %s\n%s", filepath.Base(file),
				strings.Join(lines[max(0, len(lines)-8):], ""))
		}
	}
	return all.String()
}

// files writes the certificates and configurations of the parts.
func (c *cluster) files(o options, programs, images, address string) error {
	for _, dir := range []string{"log", "pki", "etcd"} {
		if err := os.Mkdir(filepath.Join(c.state, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Link(filepath.Join(programs, "kube"), filepath.Join(c.state, "kube")); err != nil {
		return err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.state, "options.json"), b, 0o600); err != nil {
		return err
	}
	ca, err := newAuthority(filepath.Join(c.state, "pki"))
	if err != nil {
		return err
	}
	inside := "https://" + planeAddress
	err = errors.Join(
		ca.pair("sa", "service-accounts", nil),
		ca.pair("apiserver", "kube-apiserver", nil, "localhost", "kubernetes",
			"kubernetes.default.svc", "127.0.0.1", planeAddress, serviceAddress),
		ca.pair("kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}),
		ca.kubeconfig("admin", "https://"+address, "admin", "system:masters"),
		ca.kubeconfig("inside", inside, "admin", "system:masters"),
		ca.kubeconfig("controller-manager", inside, "system:kube-controller-manager"),
		ca.kubeconfig("scheduler", inside, "system:kube-scheduler"))
	for i := 1; i <= o.Nodes && err == nil; i++ {
		name := nodeName(i)
		err = errors.Join(
			ca.pair(name, "system:node:"+name, []string{"system:nodes"}, name, nodeAddress(i)),
			ca.kubeconfig(name, inside, "system:node:"+name, "system:nodes"),
			nodeFiles(c.state, c.group(), images, i))
	}
	return err
}
