//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const cniPlugins = "/usr/lib/cni" // Debian's directory

// check returns a lacksError if the machine cannot run a cluster.
func check() error {
	if os.Geteuid() != 0 {
		return lacksError("root, for namespaces and containers")
	}
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	for _, need := range [][2]string{{"containerd", "containerd"}, {"ctr", "containerd"},
		{"runc", "runc"}, {"ip", "iproute2"}, {"cp", "coreutils"}, {"docker", "docker.io"}} {
		if _, err := exec.LookPath(need[0]); err != nil {
			return lacksError(fmt.Sprintf("the program %s (Debian's package %s)", need[0], need[1]))
		}
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(cniPlugins, plugin)); err != nil {
			return lacksError("CNI's plugins in " + cniPlugins +
				" (Debian's package containernetworking-plugins)")
		}
	}
	return nil
}

// cacheDir returns the directory that keeps programs and images between runs.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "sandshell", "kube")
	return dir, os.MkdirAll(dir, 0o755)
}

// built returns the directory with the programs of the current testdata/kube.
func built(cache string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/sandshell/sandshell").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	dir, err := exec.Command(filepath.Join(strings.TrimSpace(string(root)), "testdata", "kube",
		"build"), "--where").Output()
	if err != nil {
		return "", fmt.Errorf("testdata/kube/build --where: %w", err)
	}
	programs := strings.TrimSpace(string(dir))
	if filepath.Dir(programs) != cache {
		return "", fmt.Errorf("testdata/kube/build keeps its programs at %s, not in %s", programs,
			cache)
	}
	if _, err := os.Stat(programs); errors.Is(err, os.ErrNotExist) {
		return "", lacksError("Kubernetes itself, which testdata/kube/build builds once, in some " +
			"10 minutes")
	}
	return programs, nil
}

// newState makes a directory for one cluster. A lock on it shows that the cluster's program is
// alive.
func newState(cache string) (string, *os.File, error) {
	dir, err := os.MkdirTemp(cache, "run-")
	if err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	return dir, lock, err
}

// sweep removes the directories and control groups of clusters whose program was killed.
func sweep(cache string) {
	locks, _ := filepath.Glob(filepath.Join(cache, "run-*", "lock"))
	for _, name := range locks {
		lock, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			c := &cluster{state: filepath.Dir(name), lock: lock}
			c.down()
		}
		lock.Close()
	}
}
