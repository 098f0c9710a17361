package sshbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// largeEnv returns an environment of so many KiB.
func largeEnv(kib int) (env []string) {
	for i := range kib {
		env = append(env, fmt.Sprintf("BIG_%04d=%s", i, strings.Repeat("Y", 1014)))
	}
	return env
}

// What is asked of a box is as long as Linux allows, or is refused at once: no message is so long
// that it ends the connection, with all that is under way in the box.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) sandbox.Sandbox{
		"container": func(t *testing.T) sandbox.Sandbox {
			testenv.NeedsAll(t, "it is the same boxd as on a machine, behind the same client")
			testEngine(t)
			return newBox(t, Config{Image: testImage, Network: "none", PIDs: 4096})
		},
		"boxd": func(t *testing.T) sandbox.Sandbox { return dialBoxd(t, startSSHD(t).withBoxd()) },
		"plain": func(t *testing.T) sandbox.Sandbox {
			box, err := Dial(t.Context(), startSSHD(t).config())
			noError(t, err)
			t.Cleanup(func() { noError(t, box.Close()) })
			return box
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // against a hang
			defer cancel()
			box := open(t)
			// A Run that is under way is ended by a cut of a plain sshd's connection, and held up
			// by one of boxd's.
			witness, err := box.Open(ctx)
			noError(t, err)
			_, err = witness.Execute(ctx, "sleep 1000", sandbox.Yield(time.Millisecond))
			noError(t, err)
			beside, err := box.Dial(ctx, "unix", "/nowhere")
			if err == nil {
				beside.Close()
				t.Error("/nowhere has a listener")
			}
			longMessages(ctx, t, box, name != "plain")
			if r, err := witness.Wait(ctx, sandbox.Yield(time.Millisecond)); err != nil ||
				r.State != sandbox.Running {
				t.Errorf("the session that was open before: %+v, %v", r, err)
			}
			if _, err := witness.Interrupt(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// So are the questions that the engine asks, and their answers.
func TestLongQuestions(t *testing.T) {
	t.Parallel()
	h := containerOf(t, nil)
	pids := []int{1}
	for i := range 100_000 {
		pids = append(pids, 1<<30+i) // there are none
	}
	if alive, err := h.Alive(t.Context(), pids...); err != nil || len(alive) != 1 {
		t.Errorf("of %d processes %v live, %v", len(pids), alive, err)
	}
	if sent, err := h.Signal(t.Context(), pids[1:], "CONT"); err != nil || sent != 0 {
		t.Errorf("%d signals were sent, %v", sent, err)
	}
	ones := make([]int, 5000)
	for i := range ones {
		ones[i] = 1
	}
	if tree, err := h.Alive(t.Context(), ones...); err != nil || len(tree) == 0 {
		t.Errorf("%d processes, %v", len(tree), err)
	}
}

func longMessages(ctx context.Context, t *testing.T, box sandbox.Sandbox, takesAll bool) {
	const MiB = 1024
	// the last is more than Linux takes, and than one message holds
	for _, kib := range []int{MiB, 10 * MiB} {
		s, err := box.Open(ctx, sandbox.Env(largeEnv(kib)...))
		if fits := kib <= MiB && takesAll; !fits {
			if !errors.Is(err, syscall.E2BIG) {
				t.Errorf("Open with %d KiB of environment: %v", kib, err)
			}
			continue
		}
		noError(t, err)
		for _, leave := range []string{"exec bash --norc", "exit 3", ":"} {
			r, err := s.Execute(ctx, `echo ${#BIG_0000} $(env | grep -c '^BIG_')`)
			exited(t, r, err, fmt.Sprintf("1014 %d\n", kib))
			if r, err := s.Execute(ctx, leave); err != nil || r.Restarted != (leave != ":") {
				t.Errorf("%s in a session with %d KiB: %+v, %v", leave, kib, r, err)
			}
		}
		noError(t, s.Close())
		job, err := box.Background(ctx, "env | grep -c '^BIG_'; : "+strings.Repeat("x", 300<<10),
			sandbox.Env(largeEnv(kib)...))
		noError(t, err)
		r, err := job.Wait(ctx)
		exited(t, r, err, fmt.Sprintf("%d\n", kib))
	}
	long := strings.Repeat("long/", 100<<10)
	for what, do := range map[string]func() error{
		"Dial":      func() error { _, err := box.Dial(ctx, "unix", "/"+long); return err },
		"Dial tcp":  func() error { _, err := box.Dial(ctx, "tcp", long+":1"); return err },
		"Listen":    func() error { _, err := box.Listen(ctx, "unix", "/"+long); return err },
		"CopyTo":    func() error { return box.CopyTo(ctx, "/etc/passwd", "/"+long) },
		"CopyFrom":  func() error { return box.CopyFrom(ctx, "/"+long, t.TempDir()) },
		"ReadFile":  func() error { _, err := box.Files().ReadFile(ctx, "/"+long, 1); return err },
		"WriteFile": func() error { return box.Files().WriteFile(ctx, "/"+long, nil, 0o600) },
		"Run Dir": func() error {
			_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}, Dir: "/" + long})
			return err
		},
		"Run program": func() error {
			_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"/" + long}})
			return err
		},
		"Run User": func() error {
			_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}, User: long})
			return err
		},
		"Open Dir": func() error { _, err := box.Open(ctx, sandbox.Dir("/"+long)); return err },
		"Run arguments": func() error {
			code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"true", long}})
			if err == nil && code != 0 { // a plain sshd's shell says it
				err = syscall.E2BIG
			}
			return err
		},
	} {
		if err := do(); err == nil || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrCut) {
			text := fmt.Sprint(err)
			t.Errorf("%s with 500 KiB: %.100s … %s", what, text, text[max(0, len(text)-100):])
		}
	}
}
