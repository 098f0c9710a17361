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
var hijackScript string

// hijackJoin starts a program in the box that takes over a "boxd join": when is "kill" or "wait",
// and how is what it then does, as testdata/hijack.py says.
func hijackJoin(t *testing.T, box *DockerSSHBox, when, how string) {
	t.Helper()
	ctx := testContext(t)
	noError(t, box.Files().WriteFile(ctx, "/tmp/hijack.py", []byte(hijackScript), 0o755))
	expect(t, box, "ssh-keygen -qt ed25519 -N '' -f /tmp/hostkey; mkdir -p /run/sshd 2>/dev/null; "+
		"X=kept", 0, "")
	_, err := box.Background(ctx, "exec python3 /tmp/hijack.py "+when+" "+how+" "+
		box.host.container.Box+" >/tmp/said 2>&1")
	noError(t, err)
}

// wantHijacked expects the program of hijackJoin to run in a process that came from outside.
func wantHijacked(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	expect(t, box, "until [ -e /tmp/came ]; do sleep 0.02; done; cat /tmp/said /tmp/came", 0,
		"waits\ntraced\nparent 0\n")
}

// TestHijack has a program of the box trace a "boxd join" and take it over. It gains nothing, since
// it does not decide who owns the box, and client and boxd know each other's keys. For the owner it
// is a cut. (As root, sshd lacks the rights to answer for long.)
func TestHijack(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it makes eight boxes, and programs that keep a processor busy: boxd's "+
		"TestImpostor and TestClaimByJoin test what could follow from it")
	d := testEngine(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the program injects code for amd64")
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil &&
		scope[0] != '0' {
		t.Skip("Yama, a security module of the kernel, forbids tracing")
	}
	for _, user := range []string{"0", "1000"} {
		config := Config{Image: testImage, Network: "none", User: user}
		for _, how := range []string{"door", "server", "words"} {
			t.Run(how+"/"+user, func(t *testing.T) {
				t.Parallel()
				box := newBox(t, config)
				hijackJoin(t, box, "kill", how)
				wantHijacked(t, box)
				switch how {
				case "door":
					speakThroughDoor(t, box)
				case "server":
					expect(t, box, "grep -c 'remote software version Go' /tmp/log", 0, "1\n")
				}
				expect(t, box, "echo $X", 0, "kept\n")
				if !box.host.Owns(testContext(t)) {
					t.Error("the owner has lost the box")
				}
			})
		}
		t.Run("attach/"+user, func(t *testing.T) {
			t.Parallel()
			kept := config
			kept.Keep = true
			box, err := New(testContext(t), kept)
			noError(t, err)
			t.Cleanup(func() {
				d.ContainerRemove(context.Background(), box.ContainerID(),
					client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			})
			hijackJoin(t, box, "wait", "server")
			expect(t, box, "until [ -s /tmp/said ]; do sleep 0.02; done", 0, "")
			noError(t, box.Detach())
			again, err := Engine{}.Attach(testContext(t), box.ContainerID())
			noError(t, err)
			wantHijacked(t, again)
			expect(t, again, "grep -c 'remote software version Go' /tmp/log; echo $X", 0,
				"1\nkept\n")
			noError(t, again.Close())
		})
	}
}

// speakThroughDoor speaks to boxd as a process that came from outside.
func speakThroughDoor(t *testing.T, box *DockerSSHBox) {
	t.Helper()
	const claim = "N ssh-ed25519 " +
		"AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl x"
	for _, word := range []string{"authorize", "adopt"} {
		out := script(t, box, "echo 'sandshell "+word+" "+claim+
			"' | socat -t 5 - UNIX-CONNECT:/tmp/door")
		if !strings.HasPrefix(out, "SSH-2.0-sandshell_boxd") ||
			strings.Contains(out, "sandshell answer") {
			t.Errorf("%s is answered: %.300q", word, out)
		}
	}
	out := script(t, box, `ssh-keygen -qt ed25519 -N '' -f /tmp/own
ssh -F none -i /tmp/own -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ProxyCommand='socat - UNIX-CONNECT:/tmp/door' box true 2>&1 || true`)
	if !strings.Contains(out, "Permission denied (publickey)") {
		t.Errorf("a client with another key logs in: %s", out)
	}
}
