package sshbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// eachBox runs a test with a new box of each kind.
func eachBox(t *testing.T, test func(t *testing.T, box sandbox.Sandbox)) {
	t.Run("SSHBox", func(t *testing.T) {
		box, err := Dial(t.Context(), startSSHD(t).config())
		noError(t, err)
		defer box.Close()
		test(t, box)
	})
	t.Run("DockerSSHBox", func(t *testing.T) {
		testEngine(t)
		box, err := New(t.Context(), Config{Image: testImage, Network: "none"})
		noError(t, err)
		if box.ContainerID() == "" || box.ContainerName() == "" {
			t.Error("no id or name")
		}
		defer noContainers(t)
		defer box.Close()
		test(t, box)
	})
}

// TestBoxRemembers shows that a session keeps its state, and that Close ends its commands.
func TestBoxRemembers(t *testing.T) {
	eachBox(t, func(t *testing.T, box sandbox.Sandbox) {
		if want := strings.SplitN(strings.TrimPrefix(t.Name(), "TestBoxRemembers/"), "/",
			2)[0]; box.String() != want {
			t.Errorf("String is %q", box)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		_, err := box.Execute(ctx, "cd /usr/share; X=remembered; false")
		noError(t, err)
		r, err := box.Execute(ctx, `echo "$? $X $PWD"; tty >/dev/null && echo terminal`)
		noError(t, err)
		if r.Output != "1 remembered /usr/share\nterminal\n" || r.State != sandbox.Exited ||
			r.Cwd != "/usr/share" {
			t.Errorf("got %+v", r)
		}
		var out bytes.Buffer
		code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"cat"},
			Stdin: strings.NewReader("in\x00"), Stdout: &out})
		if code != 0 || err != nil || out.String() != "in\x00" {
			t.Errorf("Run: %d, %v, %q", code, err, out.String())
		}
		file := filepath.Join(t.TempDir(), "file")
		noError(t, os.WriteFile(file, []byte("content"), 0o640))
		there := fmt.Sprintf("/tmp/sandshell-box-test-%d", os.Getpid())
		noError(t, box.CopyTo(ctx, file, there))
		noError(t, box.CopyFrom(ctx, there, file+"-back"))
		if b, err := os.ReadFile(file + "-back"); string(b) != "content" {
			t.Errorf("got back %q, %v", b, err)
		}
		_, err = box.Execute(ctx, "rm "+there)
		noError(t, err)

		// Close ends the commands that are running.
		var wg sync.WaitGroup
		for range 5 {
			s, err := box.Open(t.Context())
			noError(t, err)
			wg.Go(func() {
				if _, err := s.Execute(t.Context(), "sleep 60"); !errors.Is(err,
					sandbox.ErrClosed) {
					t.Errorf("Execute: %v", err)
				}
			})
		}
		time.AfterFunc(100*time.Millisecond, func() { box.Close() })
		wg.Wait()
		noError(t, box.Close())
		if _, err := box.Execute(t.Context(), ":"); !errors.Is(err, sandbox.ErrClosed) {
			t.Errorf("Execute: %v", err)
		}
	})
}

// TestBoxLost removes the container of a box whose command is running.
func TestBoxLost(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	box, err := New(t.Context(), Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	time.AfterFunc(100*time.Millisecond, func() {
		d.ContainerRemove(context.Background(), box.ContainerID(),
			client.ContainerRemoveOptions{Force: true})
	})
	begin := time.Now()
	_, err = box.Execute(t.Context(), "sleep 60")
	var lost *sandbox.LostError
	if !errors.Is(err, sandbox.ErrLost) || !errors.As(err, &lost) ||
		!strings.Contains(lost.Reason, "removed") {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("Execute noticed the loss after %v", d)
	}
}

func TestBoxWorkDir(t *testing.T) {
	testEngine(t)
	box, err := New(t.Context(), Config{Image: testImage, User: "user", Dir: "/usr/share",
		Env: []string{"A=b"}})
	noError(t, err)
	r, err := box.Execute(t.Context(), "pwd; echo $A; id -un")
	noError(t, err)
	if r.Output != "/usr/share\nb\nuser\n" {
		t.Errorf("got %+v", r)
	}
	noError(t, box.Close())
	_, err = New(t.Context(), Config{Image: testImage, Dir: "/no/such/directory"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/directory") ||
		!strings.Contains(err.Error(), testImage) {
		t.Errorf("got %v", err)
	}
	noContainers(t)
}

// TestBoxThroughBox dials a box through the Dial of another box.
func TestBoxThroughBox(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	first, err := Dial(t.Context(), s.config())
	noError(t, err)
	defer first.Close()
	c := s.config()
	c.DialContext = first.Dial
	second, err := Dial(t.Context(), c)
	noError(t, err)
	defer second.Close()
	r, err := second.Execute(t.Context(), "echo here")
	noError(t, err)
	if r.Output != "here\n" {
		t.Errorf("got %+v", r)
	}
	var _ func(context.Context, string, string) (net.Conn, error) = first.Dial
}
