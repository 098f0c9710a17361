//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dropsIn is the environment variable that makes the test's binary drop its capabilities and
// execute its arguments.
const dropsIn = "SANDSHELL_TEST_DROP_CAPABILITIES"

func dropAndExecute() error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// As in Podman, every program of a user who is not root has capabilities.
func TestDropCapabilities(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give capabilities: run it as root")
	}
	self := t.TempDir() // made enterable for other users
	for _, dir := range []string{self, self + "/.."} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self += "/self"
	if err := exec.Command("cp", executable(t), self).Run(); err != nil {
		t.Fatal(err)
	}
	of := func(uid uint32) string {
		cmd := exec.Command(self, "grep", "-E", "^Cap(Inh|Prm|Eff|Amb)", "/proc/self/status")
		cmd.Env = []string{dropsIn + "=1", dontLinger, "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: uid, Gid: uid},
			AmbientCaps: []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_SETUID},
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return regexp.MustCompile(`\s+`).ReplaceAllString(string(out), " ")
	}
	const none = "0000000000000000"
	if got := of(12345); got != fmt.Sprintf("CapInh: %[1]s CapPrm: %[1]s CapEff: %[1]s CapAmb: "+
		"%[1]s ", none) {
		t.Errorf("a user has %q", got)
	}
	if got := of(0); !regexp.MustCompile("CapEff: 0*[1-9a-f]").MatchString(got) {
		t.Errorf("root has %q", got)
	}
}
