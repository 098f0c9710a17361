package fsuser

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/test/seccomptest"
)

const withoutSetfsuid = "SANDSHELL_TEST_WITHOUT_SETFSUID"

// During As, f has the other user's rights to files, and the files that it makes are that user's.
// Afterwards this process has its own rights again. The same is true on a kernel without calls for
// file system ids, such as gVisor's.
func TestAs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root becomes other users: run it as root")
	}
	without := os.Getenv(withoutSetfsuid) != ""
	if without {
		if err := seccomptest.Refuse(unix.ENOSYS, true, setfsuid, setfsgid); err != nil {
			t.Fatal(err)
		}
	}
	testAs(t)
	if without {
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAs$")
	cmd.Env = append(os.Environ(), withoutSetfsuid+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("without setfsuid: %v\n%s", err, out)
	}
}

func testAs(t *testing.T) {
	// t.TempDir would not do: other users cannot enter its parents.
	dir, err := os.MkdirTemp("/tmp", "sandshell-fsuser-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	secret, shared, made := filepath.Join(dir, "secret"), filepath.Join(dir, "shared"),
		filepath.Join(dir, "made")
	for name, mode := range map[string]os.FileMode{secret: 0o600, shared: 0o640} {
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(shared, 0, 54321); err != nil { // the group is a supplementary one
		t.Fatal(err)
	}
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	for range 3 {
		if !As(IDs{UID: 12345, GID: 12346, Groups: []int{12346, 54321}}, func() {
			tryAsUser(t, secret, shared, made)
		}) {
			t.Fatal("it may not")
		}
		var stat unix.Stat_t
		if err := unix.Stat(made, &stat); err != nil || stat.Uid != 12345 || stat.Gid != 12346 {
			t.Errorf("what it made is %d:%d's, %v", stat.Uid, stat.Gid, err)
		}
		if _, err := os.ReadFile(secret); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if now, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); now != dumpable {
			t.Errorf("it was dumpable %d and is %d", dumpable, now)
		}
	}
	if uid, gid := effectiveIDs(); uid != 0 || gid != 0 {
		t.Errorf("this thread is %d:%d's", uid, gid)
	}
}

// tryAsUser tries what the other user may and may not do.
func tryAsUser(t *testing.T, secret, shared, made string) {
	if _, err := os.ReadFile(secret); !os.IsPermission(err) {
		t.Errorf("root's file: %v", err)
	}
	if _, err := os.ReadFile(shared); err != nil {
		t.Errorf("the group's file: %v", err)
	}
	os.Remove(made)
	if err := os.WriteFile(made, nil, 0o600); err != nil {
		t.Error(err)
	}
}
