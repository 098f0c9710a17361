package sshbox

import (
	"fmt"
	"os"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// beforePeerPidfds is a seccomp profile that makes a kernel as it was before 6.5: it knows no
// SO_PEERPIDFD.
const beforePeerPidfds = `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["getsockopt"],"action":"SCMP_ACT_ERRNO","errnoRet":92,
	"args":[{"index":1,"value":1,"op":"SCMP_CMP_EQ"},{"index":2,"value":77,"op":"SCMP_CMP_EQ"}]}]}`

// Where the kernel has no pidfds of a socket's peer, a box works as elsewhere, and boxd keeps its
// standard input, which was taken for such a descriptor.
func TestContainerBeforePeerPidfds(t *testing.T) {
	t.Parallel()
	if dockertest.Podman(t, testEngine(t)) {
		t.Skip("Podman takes the name of a file on its machine where Docker takes the profile")
	}
	box := newBox(t, Config{Image: testImage, Network: "none", Keep: true,
		SecurityOpt: []string{"seccomp=" + beforePeerPidfds}})
	missing := runs(t, box, `python3 -c 'import socket
a, b = socket.socketpair()
try: print(a.getsockopt(1, 77))
except OSError as e: print(e.errno)'`)
	if missing != "92\n" {
		t.Fatalf("SO_PEERPIDFD says %q", missing)
	}
	inspected, err := box.host.engine.ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	noError(t, err)
	stdin := fmt.Sprintf("/proc/%d/fd/0", inspected.Container.State.Pid)
	before, err := os.Readlink(stdin)
	if err != nil {
		t.Skipf("only root on the engine's machine sees boxd's descriptors, run it there: %v", err)
	}
	noError(t, box.Detach())
	for last := range 3 { // each is a connection more
		attached, err := Engine{}.Attach(t.Context(), box.ContainerID())
		noError(t, err)
		does(t, attached, "echo hi", 0, "hi\n")
		if after, err := os.Readlink(stdin); err != nil || after != before {
			t.Errorf("boxd's standard input was %s and is %s, %v", before, after, err)
		}
		leave := attached.Detach
		if last == 2 {
			leave = attached.Close
		}
		noError(t, leave())
	}
}
