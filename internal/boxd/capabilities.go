//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropCapabilities executes this program anew without what a user other than root does not have in
// Docker: Podman gives the processes of such a container all capabilities that are there for root,
// to become anybody among them. What sudo may get (the bounding set) stays. It returns if there are
// none to drop.
//
// A thread has capabilities of its own. That which executes the program has them for all there will
// be.
func dropCapabilities() error {
	if os.Geteuid() == 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("look at the capabilities: %w", err)
	}
	if has == none {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return syscall.Exec(self, os.Args, os.Environ())
}
