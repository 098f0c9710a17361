//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The cluster's addresses. They are nobody else's: its network has no way out.
const (
	planeAddress = "10.90.0.1"
	serviceRange = "10.96.0.0/16"
	// the Service kubernetes: the plane has the address itself, for there is no kube-proxy
	serviceAddress = "10.96.0.1"
	dnsAddress     = "10.96.0.10"
)

func nodeName(i int) string    { return "node" + strconv.Itoa(i) }
func nodeAddress(i int) string { return "10.90.0." + strconv.Itoa(10+i) }
func podRange(i int) string    { return fmt.Sprintf("10.91.%d.0/24", i) }

// sysctls are what the kubelet wants the machine to have. It is shown files that have it, and so
// leaves the machine alone.
var sysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10",
	"kernel/panic_on_oops":     "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// nodeFiles writes a node's configuration, and gives it its images.
func nodeFiles(state, group, images string, i int) error {
	name := nodeName(i)
	dir := filepath.Join(state, name)
	for _, d := range []string{"", "cni", "kubelet"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for file, content := range map[string]string{
		"containerd.toml": containerdConfig("/run/kube/"+name+"/containerd",
			"/run/containerd-state", "/run/containerd.sock"),
		"kubelet.yaml":      kubeletConfig(name, group),
		"cni/pods.conflist": networkConfig(i),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return copyImages(images, filepath.Join(dir, "containerd"))
}

// node is pid 1 of a node's namespaces. The plane writes a line when it has given the node its end
// of a cable.
func node(state, name string) error {
	var o options
	if err := o.read(state); err != nil {
		return err
	}
	i, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
	if err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return err
	}
	if err := nodeMounts(state, name); err != nil {
		return err
	}
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("no cable: %w", err)
	}
	if err := nodeNetwork(i, o.Nodes); err != nil {
		return err
	}
	containerd, err := logged(name+"-containerd", "containerd", "--config",
		filepath.Join(here, name, "containerd.toml"))
	if err != nil {
		return err
	}
	if err := connectable("/run/containerd.sock"); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	startKubelet := func() (*exec.Cmd, error) {
		return logged(name+"-kubelet", filepath.Join(here, "kube"), "kubelet", "--config",
			filepath.Join(here, name, "kubelet.yaml"),
			"--kubeconfig", filepath.Join(here, "pki", name+".kubeconfig"), "--hostname-override",
			name, "--node-ip", nodeAddress(i))
	}
	kubelet, err := startKubelet()
	starts := 1
	if err != nil {
		return err
	}
	for { // every process of the node whose parent has ended is pid 1's to reap
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case pid == kubelet.Process.Pid && status.ExitStatus() == 1 && starts < kubeletStarts:
			if kubelet, err = startKubelet(); err != nil {
				return err
			}
			starts++
		case pid == kubelet.Process.Pid:
			return fmt.Errorf("the kubelet has ended: %#x", status)
		case pid == containerd.Process.Pid:
			return fmt.Errorf("containerd has ended: %#x", status)
		}
	}
}

// kubeletStarts is how often a kubelet is started: it ends if containerd, which accepts
// connections, is "not initialized yet". systemd does so without an end.
const kubeletStarts = 10

func nodeMounts(state, name string) error {
	if err := privateMounts(state, "/run", "/tmp", "/var/log", "/var/lib"); err != nil {
		return err
	}
	for dir, to := range map[string]string{"kubelet": "/var/lib/kubelet", "cni": "/run/cni"} {
		if err := bind(filepath.Join(name, dir), to); err != nil {
			return err
		}
	}
	if err := os.Mkdir("/run/sysctl", 0o755); err != nil {
		return err
	}
	for path, value := range sysctls {
		file := filepath.Join("/run/sysctl", filepath.Base(path))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, "/proc/sys/"+path, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind over the sysctl %s: %w", path, err)
		}
	}
	// as volumes' propagation wants it
	return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
}

// nodeNetwork is the node's address, and its ways to the services and to the other nodes' pods.
func nodeNetwork(i, nodes int) error {
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", nodeAddress(i) + "/24", "dev", "eth0"},
		{"link", "set", "eth0", "up"},
		{"route", "add", serviceAddress, "via", planeAddress},
		// said at once, as to a program that asks the name server, of which there is none
		{"route", "add", "unreachable", serviceRange},
	}
	for other := 1; other <= nodes; other++ {
		if other != i {
			steps = append(steps, []string{"route", "add", podRange(other), "via",
				nodeAddress(other)})
		}
	}
	for _, step := range steps {
		if err := ip(step...); err != nil {
			return err
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}
