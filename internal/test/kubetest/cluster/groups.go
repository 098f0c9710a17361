//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const groupRoot = "/sys/fs/cgroup"

// hierarchies returns the roots of the control groups: the only one of version 2, or one for each
// controller of version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(groupRoot, "cgroup.controllers")); err == nil {
		return []string{groupRoot}, nil
	}
	all, err := os.ReadDir(groupRoot)
	if err != nil {
		return nil, lacksError("control groups at " + groupRoot)
	}
	var roots []string
	for _, e := range all {
		if e.IsDir() { // not a link, such as cpuacct -> cpu,cpuacct
			roots = append(roots, filepath.Join(groupRoot, e.Name()))
		}
	}
	return roots, nil
}

// makeGroups makes a control group for the cluster, and one in it for each node.
func makeGroups(name string, nodes int) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	names := []string{name}
	for i := 1; i <= nodes; i++ {
		names = append(names, filepath.Join(name, nodeName(i)))
	}
	for _, root := range roots {
		for _, n := range names {
			dir := filepath.Join(root, n)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return lacksError(fmt.Sprintf("the right to make control groups: %v", err))
			}
			if err := inherit(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// inherit gives a new group what its parent has. A cpuset of version 1 begins without processors,
// and a group of version 2 without controllers.
func inherit(dir string) error {
	parent := filepath.Dir(dir)
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil && len(b) > 1 {
			err = os.WriteFile(filepath.Join(dir, file), b, 0o644)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, controller := range []string{"+cpu", "+cpuset", "+memory", "+pids", "+io"} {
		f, err := os.OpenFile(filepath.Join(parent, "cgroup.subtree_control"), os.O_WRONLY, 0)
		if err != nil {
			return nil // version 1
		}
		f.WriteString(controller) // if one is missing, the kubelet says so
		f.Close()
	}
	return nil
}

// removeGroups removes the cluster's groups. Their processes have ended, but the kernel may still
// be releasing the last of them.
func removeGroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return nil
	}
	for _, root := range roots {
		var dirs []string
		filepath.WalkDir(filepath.Join(root, name), func(path string, e fs.DirEntry,
			err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, dir := range dirs {
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				if err = syscall.Rmdir(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
					break
				}
				if time.Since(begin) > 10*time.Second {
					return fmt.Errorf("remove the control group %s: %w", dir, err)
				}
			}
		}
	}
	return nil
}
