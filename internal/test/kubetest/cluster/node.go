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

// The cluster's addresses. They cannot collide with others, because its network has no way out.
const (
	planeAddress = "10.90.0.1"
	serviceRange = "10.96.0.0/16"
	// The Service kubernetes. The control plane has this address itself, because there is no
	// kube-proxy.
	serviceAddress = "10.96.0.1"
	dnsAddress     = "10.96.0.10"
)

func nodeName(i int) string    { return "node" + strconv.Itoa(i) }
func nodeAddress(i int) string { return "10.90.0." + strconv.Itoa(10+i) }
func podRange(i int) string    { return fmt.Sprintf("10.91.%d.0/24", i) }

// sysctls are the values that the kubelet wants the machine to have. The kubelet sees files with
// these values, so it does not change the machine's.
var sysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10",
	"kernel/panic_on_oops":     "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// nodeFiles writes a node's configuration and copies its images.
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

// node runs as pid 1 of a node's namespaces. The control plane writes a line when it has given the
// node its end of a cable, a pair of virtual interfaces.
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
	for { // pid 1 has to reap every process of the node whose parent has ended
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

// kubeletStarts is how many times a kubelet is started. It ends if containerd accepts connections
// but is "not initialized yet". systemd would start it without limit.
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
	// The propagation of volumes' mounts needs it.
	return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
}

// nodeNetwork sets the node's address, and its routes to the services and to the pods of other
// nodes.
func nodeNetwork(i, nodes int) error {
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", nodeAddress(i) + "/24", "dev", "eth0"},
		{"link", "set", "eth0", "up"},
		{"route", "add", serviceAddress, "via", planeAddress},
		// A program that asks the name server, which does not exist, gets an error at once.
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
