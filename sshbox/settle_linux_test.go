package sshbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// TestQuestionBehindSlowOutput shows that Wait returns all output before a question, even if the
// output comes on a slower connection than the state of the program. Without boxd, a box has more
// than one connection if it has more than MaxSessions sessions.
func TestQuestionBehindSlowOutput(t *testing.T) {
	t.Parallel()
	c := startSSHD(t).config()
	c.MaxSessions = 1 // so that the session has a connection of its own
	box, err := Dial(t.Context(), c)
	noError(t, err)
	defer box.Close()
	s, err := box.Open(t.Context())
	noError(t, err)
	r, err := s.Execute(t.Context(), "echo $PPID")
	noError(t, err)
	server, err := strconv.Atoi(strings.TrimSpace(r.Output))
	noError(t, err)
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(server, sig); err != nil {
			t.Errorf("signal the connection's sshd process: %v", err)
		}
	}
	printed := filepath.Join(t.TempDir(), "go")
	r, err = s.Execute(t.Context(),
		fmt.Sprintf(`until [ -e %s ]; do sleep 0.01; done; echo before; printf 'name? '; read -r n`,
			printed), sandbox.Yield(time.Millisecond))
	noError(t, err)
	if r.State != sandbox.Running {
		t.Fatalf("%+v", r)
	}
	signal(syscall.SIGSTOP)
	goOn := time.AfterFunc(500*time.Millisecond, func() { signal(syscall.SIGCONT) })
	defer func() { // before Close, which would wait for the server
		if goOn.Stop() {
			signal(syscall.SIGCONT)
		}
	}()
	noError(t, os.WriteFile(printed, nil, 0o600))
	r, err = s.Wait(t.Context())
	noError(t, err)
	if r.State != sandbox.Waiting || r.Output != "before\nname? " {
		t.Errorf("state %v, %q", r.State, r.Output)
	}
}
