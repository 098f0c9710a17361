//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropCapabilities executes this program again without the capabilities that a user other than root
// does not have in Docker. Podman gives the processes of such a user all capabilities of root's,
// among them those to become any user. What sudo may get (the bounding set) stays. dropCapabilities
// returns nil if there are none to drop.
//
// Each thread has capabilities of its own. The process gets those of the thread that executes the
// program.
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
