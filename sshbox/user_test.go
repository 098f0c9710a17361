package sshbox

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// TestAttachKeepsUser shows that a session keeps its user after another program has attached, also
// in the shells that replace its first. When it is closed, its processes end.
func TestAttachKeepsUser(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	session, err := box.Open(ctx, sandbox.User("nobody"), sandbox.Dir("/tmp"))
	noError(t, err)
	r, err := session.Execute(ctx, "id -un")
	wantExited(t, r, err, "nobody\n")

	other, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	defer other.Close()
	kept, ok := other.Session(session.ID())
	if !ok {
		t.Fatal("the new owner does not have the session")
	}
	r, err = kept.Execute(ctx, "(setsid sleep 1000 >/dev/null 2>&1 </dev/null &); exit")
	noError(t, err)
	if !r.Restarted {
		t.Errorf("got %+v", r)
	}
	r, err = kept.Execute(ctx, "echo $(id -un) $HOME $PWD; pgrep -c -u nobody -x sleep")
	wantExited(t, r, err, "nobody /nonexistent /tmp\n1\n")
	noError(t, kept.Close())
	r, err = other.Execute(ctx, "pgrep -u nobody")
	noError(t, err)
	if strings.TrimSpace(r.Output) != "" {
		t.Errorf("the session's Close has left processes: %s", r.Output)
	}
}
