package sshbox

import (
	"context"
	_ "embed"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

//go:embed testdata/hijack.py
var hijack string

// attack has a program of the box become its next "boxd join".
func attack(t *testing.T, box *DockerSSHBox, when, how string) {
	t.Helper()
	ctx := limit(t)
	noError(t, box.Files().WriteFile(ctx, "/tmp/hijack.py", []byte(hijack), 0o755))
	does(t, box, "ssh-keygen -qt ed25519 -N '' -f /tmp/hostkey; mkdir -p /run/sshd 2>/dev/null; "+
		"X=kept", 0, "")
	_, err := box.Background(ctx, "exec python3 /tmp/hijack.py "+when+" "+how+" "+
		box.host.container.Box+" >/tmp/said 2>&1")
	noError(t, err)
}

// attacked checks that the attack got to its point: what has come from outside is the program.
func attacked(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	does(t, box, "until [ -e /tmp/came ]; do sleep 0.02; done; cat /tmp/said /tmp/came", 0,
		"waits\ntraced\nparent 0\n")
}

// TestHijack: a program of the box traces a "boxd join" and becomes it. It gains nothing: who owns
// the box is decided elsewhere, and both ends know each other's keys. The owner has a cut. (As root
// sshd has not got the rights to answer for long.)
func TestHijack(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it makes boxes by the eight, and programs that keep a processor busy: "+
		"boxd's TestImpostor and TestClaimByJoin have what follows from it")
	d := testEngine(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("what the program injects is for amd64")
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil &&
		scope[0] != '0' {
		t.Skip("the kernel's yama forbids tracing")
	}
	for _, user := range []string{"0", "1000"} {
		config := Config{Image: testImage, Network: "none", User: user}
		for _, how := range []string{"door", "server", "words"} {
			t.Run(how+"/"+user, func(t *testing.T) {
				t.Parallel()
				box := newBox(t, config)
				attack(t, box, "kill", how)
				attacked(t, box)
				switch how {
				case "door":
					throughDoor(t, box)
				case "server":
					does(t, box, "grep -c 'remote software version Go' /tmp/log", 0, "1\n")
				}
				does(t, box, "echo $X", 0, "kept\n")
				if !box.host.Owns(limit(t)) {
					t.Error("the owner is put out")
				}
			})
		}
		t.Run("attach/"+user, func(t *testing.T) {
			t.Parallel()
			kept := config
			kept.Keep = true
			box, err := New(limit(t), kept)
			noError(t, err)
			t.Cleanup(func() {
				d.ContainerRemove(context.Background(), box.ContainerID(),
					client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			})
			attack(t, box, "wait", "server")
			does(t, box, "until [ -s /tmp/said ]; do sleep 0.02; done", 0, "")
			noError(t, box.Detach())
			again, err := Engine{}.Attach(limit(t), box.ContainerID())
			noError(t, err)
			attacked(t, again)
			does(t, again, "grep -c 'remote software version Go' /tmp/log; echo $X", 0, "1\nkept\n")
			noError(t, again.Close())
		})
	}
}

// throughDoor speaks to boxd as what comes from outside.
func throughDoor(t *testing.T, box *DockerSSHBox) {
	t.Helper()
	const claim = "N ssh-ed25519 " +
		"AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl x"
	for _, word := range []string{"authorize", "adopt"} {
		out := runs(t, box, "echo 'sandshell "+word+" "+claim+
			"' | socat -t 5 - UNIX-CONNECT:/tmp/door")
		if !strings.HasPrefix(out, "SSH-2.0-sandshell_boxd") ||
			strings.Contains(out, "sandshell answer") {
			t.Errorf("%s is answered: %.300q", word, out)
		}
	}
	out := runs(t, box, `ssh-keygen -qt ed25519 -N '' -f /tmp/own
ssh -F none -i /tmp/own -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ProxyCommand='socat - UNIX-CONNECT:/tmp/door' box true 2>&1 || true`)
	if !strings.Contains(out, "Permission denied (publickey)") {
		t.Errorf("it logs in: %s", out)
	}
}
