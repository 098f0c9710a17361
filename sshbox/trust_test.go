package sshbox

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// TestBoxdAgainstItsOwnRoot shows what a process in a box, even one of root, cannot do to boxd, as
// the package's doc says.
func TestBoxdAgainstItsOwnRoot(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box, err := New(t.Context(), Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	ctx := testContext(t)
	exec := func(command string) string {
		t.Helper()
		r, err := box.Execute(ctx, command)
		noError(t, err)
		return r.Output
	}
	exec("X=1")
	for _, sig := range []string{"KILL", "STOP", "SEGV", "QUIT", "ABRT", "BUS", "FPE", "ILL",
		"TRAP", "SYS", "PIPE", "ALRM", "PROF", "STKFLT", "USR1", "URG"} {
		exec("kill -" + sig + " 1")
	}
	for _, path := range []string{"/proc/1/mem", "/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/environ",
		"/proc/1/maps"} {
		if out := exec("cat " + path + " | head -c 1"); !strings.Contains(out,
			"Permission denied") {
			t.Errorf("%s can be read: %q", path, out)
		}
	}
	if out := exec("gdb -p 1 -batch -ex bt 2>&1"); !strings.Contains(out,
		"Operation not permitted") {
		t.Errorf("gdb: %q", out)
	}
	if out := exec("echo x >> " + wire.Path); !strings.Contains(out, "Read-only file system") &&
		!strings.Contains(out, "Text file busy") {
		t.Errorf("boxd can be written: %q", out)
	}
	if out := exec("rm -rf " + wire.Dir + " 2>&1; mount -o remount,rw " + wire.Dir +
		" 2>&1; umount " + wire.Dir + " 2>&1; ls " + wire.Dir); !strings.HasSuffix(out, "boxd\n") {
		t.Errorf("boxd can be removed: %q", out)
	}
	out := exec("{ echo 'sandshell authorize N ssh-ed25519 " +
		"AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl x'; sleep 2; } | " +
		wire.Path + " join " + box.host.container.Box)
	if strings.Contains(out, "host-key") {
		t.Errorf("a process in the box has made another owner: %q", out)
	}
	// Killing "boxd join", which carries the connection, is a cut.
	for range 3 {
		exec("pkill -KILL -f 'boxd join'; true")
	}
	if out := exec("echo $X"); out != "1\n" {
		t.Errorf("got %q", out)
	}
	exec("(sleep 0.1; pkill -KILL -f 'boxd join') & head -c 30000000 /dev/zero | base64 > a; cat " +
		"a | tail -c 1000000 > b")
	if out := exec("echo $X; tail -c 5 b"); out != "1\nAAA=\n" && !strings.HasPrefix(out, "1\nAA") {
		t.Errorf("got %q", out)
	}
}
