package faulttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// theMachine is a script that prepares a Linux on this machine's files, and runs its other
// arguments in it.
const theMachine = `#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root SANDSHELL_TEST=all
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for d in /dev/shm /run /mnt; do mount -t tmpfs tmpfs $d; done
cp "$PROGRAM" /mnt/faults.test
mount -t tmpfs tmpfs /tmp
ip link set lo up
cd /mnt
./faults.test -test.v -test.run 'TestFaults(SSH|Boxd)$' -faults.clock -faults.only clock -faults.rounds $ROUNDS -faults.parallel 1
echo "status $?"
echo o >/proc/sysrq-trigger
sleep 60
`

// TestFaultsClock sets the clock forward by a day and back by two. A container has no clock of its
// own, so the test runs in a machine that is a program of this one (User Mode Linux).
func TestFaultsClock(t *testing.T) {
	testenv.NeedsAll(t, "it starts a machine")
	linux, err := exec.LookPath("linux.uml")
	_, missing := exec.LookPath("gcc")
	if err != nil || missing != nil || os.Getuid() != 0 {
		require.NotEqual(t, "true", os.Getenv("CI"), "user-mode-linux or gcc is missing")
		t.Skip("a machine with a clock of its own is missing: as root, apt-get install " +
			"user-mode-linux gcc")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	script := filepath.Join(t.TempDir(), "init")
	require.NoError(t, os.WriteFile(script, []byte(theMachine), 0o700))
	rounds := 2
	if testenv.Full() {
		rounds = 30
	}
	runtime.LockOSThread() // the kernel ends the child with the thread that started it
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(t.Context(), linux, "mem=1G", "rootfstype=hostfs", "root=/dev/root",
		"ro", "quiet", "con=null", "con0=null,fd:1",
		"init="+script, "PROGRAM="+self, fmt.Sprint("ROUNDS=", rounds),
		"SANDSHELL_TEST_SEED="+os.Getenv("SANDSHELL_TEST_SEED"))
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+registers(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.CombinedOutput()
	t.Logf("%s", said)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(said), "--- PASS: TestFaults"))
	require.Contains(t, string(said), "status 0")
}

// registers compiles testdata/registers.c, which a processor with AMX needs, and returns the
// library's name.
func registers(t *testing.T) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), "registers.so")
	out, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", library,
		"testdata/registers.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return library
}
