package sshbox

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// A session that another program takes over stays its user's, in the shells that follow too; what
// it leaves behind ends with the box.
func TestAttachKeepsUser(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := limit(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	session, err := box.Open(ctx, sandbox.User("nobody"), sandbox.Dir("/tmp"))
	noError(t, err)
	r, err := session.Execute(ctx, "id -un")
	exited(t, r, err, "nobody\n")

	other, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	defer other.Close()
	kept, ok := other.Session(session.ID())
	if !ok {
		t.Fatal("the session is not there")
	}
	r, err = kept.Execute(ctx, "(setsid sleep 1000 >/dev/null 2>&1 </dev/null &); exit")
	noError(t, err)
	if !r.Restarted {
		t.Errorf("got %+v", r)
	}
	r, err = kept.Execute(ctx, "echo $(id -un) $HOME $PWD; pgrep -c -u nobody -x sleep")
	exited(t, r, err, "nobody /nonexistent /tmp\n1\n")
	noError(t, kept.Close())
	r, err = other.Execute(ctx, "pgrep -u nobody")
	noError(t, err)
	if strings.TrimSpace(r.Output) != "" {
		t.Errorf("left: %s", r.Output)
	}
}
