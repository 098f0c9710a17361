package sshbox

import (
	"fmt"
	"os"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// beforePeerPidfds is a seccomp profile that hides SO_PEERPIDFD, as if the kernel were older than
// Linux 6.5.
const beforePeerPidfds = `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["getsockopt"],"action":"SCMP_ACT_ERRNO","errnoRet":92,
	"args":[{"index":1,"value":1,"op":"SCMP_CMP_EQ"},{"index":2,"value":77,"op":"SCMP_CMP_EQ"}]}]}`

// TestContainerBeforePeerPidfds shows that a box works where the kernel gives no pidfd of a
// socket's peer, and that boxd then does not take its standard input, descriptor 0, for a pidfd.
func TestContainerBeforePeerPidfds(t *testing.T) {
	t.Parallel()
	if dockertest.Podman(t, testEngine(t)) {
		t.Skip("Podman takes a file's name where Docker takes the profile")
	}
	box := newBox(t, Config{Image: testImage, Network: "none", Keep: true,
		SecurityOpt: []string{"seccomp=" + beforePeerPidfds}})
	missing := script(t, box, `python3 -c 'import socket
a, b = socket.socketpair()
try: print(a.getsockopt(1, 77))
except OSError as e: print(e.errno)'`)
	if missing != "92\n" {
		t.Fatalf("getsockopt of SO_PEERPIDFD gives %q", missing)
	}
	inspected, err := box.host.engine.ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	noError(t, err)
	stdin := fmt.Sprintf("/proc/%d/fd/0", inspected.Container.State.Pid)
	before, err := os.Readlink(stdin)
	if err != nil {
		t.Skipf("only root sees boxd's descriptors: run it as root, on the engine's machine: %v",
			err)
	}
	noError(t, box.Detach())
	for attach := range 3 { // each makes another connection
		attached, err := Engine{}.Attach(t.Context(), box.ContainerID())
		noError(t, err)
		expect(t, attached, "echo hi", 0, "hi\n")
		if after, err := os.Readlink(stdin); err != nil || after != before {
			t.Errorf("boxd's standard input was %s and is %s, %v", before, after, err)
		}
		leave := attached.Detach
		if attach == 2 {
			leave = attached.Close
		}
		noError(t, leave())
	}
}
