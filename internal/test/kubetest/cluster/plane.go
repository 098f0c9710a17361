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
)

// A part is a component of the control plane, or a node.
type part struct {
	name  string
	start func() (*exec.Cmd, error)
	cmd   *exec.Cmd     // nil if the part does not run
	ended chan struct{} // closed when the part has ended
}

// controlPlane is the state of pid 1 of the cluster's namespaces.
type controlPlane struct {
	state string
	o     options
	parts []*part
	died  chan *exec.Cmd
}

// plane starts all parts, and follows orders until its standard input ends. All parts end with it.
func plane(state string) error {
	p := &controlPlane{state: state, died: make(chan *exec.Cmd, 16)}
	if err := p.o.read(state); err != nil {
		return err
	}
	if err := privateMounts(state, "/run", "/tmp"); err != nil {
		return err
	}
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", serviceAddress + "/32", "dev", "lo"},
		{"link", "add", "nodes", "type", "bridge"},
		{"addr", "add", planeAddress + "/24", "dev", "nodes"},
		{"link", "set", "nodes", "up"},
	}
	for i := 1; i <= p.o.Nodes; i++ {
		steps = append(steps, []string{"route", "add", podRange(i), "via", nodeAddress(i)})
	}
	for _, step := range steps {
		if err := ip(step...); err != nil {
			return err
		}
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	go relay(listener)
	p.define()
	for _, part := range p.parts[:2] {
		if err := p.run(part); err != nil {
			return err
		}
	}
	orders := make(chan string)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			orders <- lines.Text()
		}
	}()
	api, err := newAPI()
	if err != nil {
		return err
	}
	healthy, ready := make(chan struct{}), make(chan struct{})
	go func() { api.wait(api.healthy); close(healthy) }()
	for {
		select {
		case <-healthy: // before that, the other parts would give up on a busy machine
			healthy = nil
			for _, part := range p.parts[2:] {
				if err := p.run(part); err != nil {
					return err
				}
			}
			go func() {
				api.wait(func() bool { return api.readyNodes() == p.o.Nodes })
				close(ready)
			}()
		case <-ready:
			ready = nil
			fmt.Println("ready")
		case line, more := <-orders:
			if !more {
				return nil
			}
			if err := p.order(line); err != nil {
				fmt.Println("error:", err)
			} else {
				fmt.Println("ok")
			}
		case cmd := <-p.died:
			for _, part := range p.parts {
				if part.cmd == cmd { // no order has killed it
					return fmt.Errorf("%s has ended: %v", part.name, cmd.ProcessState)
				}
			}
		}
	}
}

func (o *options) read(state string) error {
	b, err := os.ReadFile(filepath.Join(state, "options.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, o)
}

// define defines how each part is started.
func (p *controlPlane) define() {
	component := func(name string, args ...string) {
		p.parts = append(p.parts, &part{name: name, start: func() (*exec.Cmd, error) {
			return logged(name, filepath.Join(here, "kube"), append([]string{name}, args...)...)
		}})
	}
	pki := func(file string) string { return filepath.Join(here, "pki", file) }
	patience := fmt.Sprint(int(p.o.Grace.Seconds() / 2))
	component("etcd", "--data-dir", filepath.Join(here, "etcd"), "--unsafe-no-fsync", "--log-level",
		"warn",
		"--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls",
		"http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380")
	component("apiserver", "--etcd-servers", "http://127.0.0.1:2379", "--secure-port", "443",
		"--advertise-address", planeAddress,
		"--tls-cert-file", pki("apiserver.crt"), "--tls-private-key-file", pki("apiserver.key"),
		"--client-ca-file", pki("ca.crt"),
		"--kubelet-client-certificate", pki("kubelet-client.crt"), "--kubelet-client-key",
		pki("kubelet-client.key"),
		"--kubelet-certificate-authority", pki("ca.crt"), "--kubelet-preferred-address-types",
		"InternalIP",
		"--service-account-key-file", pki("sa.crt"), "--service-account-signing-key-file",
		pki("sa.key"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range",
		serviceRange,
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--allow-privileged",
		"--default-not-ready-toleration-seconds", patience,
		"--default-unreachable-toleration-seconds", patience)
	component("controller-manager", "--kubeconfig", pki("controller-manager.kubeconfig"),
		"--leader-elect=false", "--use-service-account-credentials",
		"--service-account-private-key-file", pki("sa.key"), "--root-ca-file", pki("ca.crt"),
		"--bind-address", "127.0.0.1",
		"--node-monitor-period", "1s", "--node-monitor-grace-period", p.o.Grace.String())
	component("scheduler", "--kubeconfig", pki("scheduler.kubeconfig"), "--leader-elect=false",
		"--bind-address", "127.0.0.1")
	for i := 1; i <= p.o.Nodes; i++ {
		name := nodeName(i)
		p.parts = append(p.parts, &part{name: name, start: func() (*exec.Cmd, error) {
			return p.startNode(name)
		}})
	}
}

// startNode starts a node and connects it to the network.
func (p *controlPlane) startNode(name string) (*exec.Cmd, error) {
	cmd := inNamespaces(roleNode, p.state, name)
	cmd.Stderr = os.Stderr
	cable, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns",
		fmt.Sprint(cmd.Process.Pid))
	if err == nil {
		err = ip("link", "set", name, "master", "nodes", "up")
	}
	if err == nil {
		_, err = io.WriteString(cable, "\n")
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
	return cmd, err
}

func (p *controlPlane) run(part *part) error {
	cmd, err := part.start()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	part.cmd, part.ended = cmd, ended
	go func() {
		cmd.Wait()
		close(ended)
		p.died <- cmd
	}()
	return nil
}

func (p *controlPlane) order(line string) error {
	verb, name, _ := strings.Cut(line, " ")
	for _, part := range p.parts {
		if part.name != name {
			continue
		}
		if (part.cmd != nil) == (verb == "start") {
			return fmt.Errorf("%s runs: %t", name, part.cmd != nil)
		}
		isNode := strings.HasPrefix(name, "node")
		switch verb {
		case "start":
			return p.run(part)
		case "kill":
			cmd := part.cmd
			part.cmd = nil
			cmd.Process.Kill()
			<-part.ended
			if isNode {
				// The kernel would remove it with the node's namespace, but later.
				ip("link", "del", name)
			}
			return nil
		case "pause":
			if isNode {
				return ip("link", "set", name, "down")
			}
			return part.cmd.Process.Signal(syscall.SIGSTOP)
		case "resume":
			if isNode {
				return ip("link", "set", name, "up")
			}
			return part.cmd.Process.Signal(syscall.SIGCONT)
		}
	}
	return fmt.Errorf("unknown order %q: give kill, start, pause or resume and a part", line)
}

// relay carries connections of the machine to the API server. The listener is in the machine's
// network namespace, and this process is in the cluster's.
func relay(listener net.Listener) {
	for {
		outside, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go func() {
			defer outside.Close()
			inside, err := net.Dial("tcp", planeAddress+":443")
			if err != nil {
				return
			}
			defer inside.Close()
			done := make(chan struct{})
			go func() {
				io.Copy(inside, outside)
				inside.(*net.TCPConn).CloseWrite()
				close(done)
			}()
			io.Copy(outside, inside)
			outside.(*net.TCPConn).CloseWrite()
			<-done
		}()
	}
}
