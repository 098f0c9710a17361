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

// largeEnv returns an environment of kib KiB.
func largeEnv(kib int) (env []string) {
	for i := range kib {
		env = append(env, fmt.Sprintf("BIG_%04d=%s", i, strings.Repeat("Y", 1014)))
	}
	return env
}

// TestLongMessages calls a box with long names and arguments. Each call fails at once, as Linux
// takes none of them. No message is so long that it ends the connection, and with it all that is
// running in the box.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	besideWitness(t, func(t *testing.T, kind string) {
		if kind == "container" {
			testenv.NeedsAll(t, "boxd and its client are the same in a container as on a machine")
		}
	}, longMessages)
}

// TestLongEnvironments starts programs with long environments. A start succeeds if Linux takes the
// environment, and fails at once if not.
func TestLongEnvironments(t *testing.T) {
	t.Parallel()
	besideWitness(t, func(t *testing.T, kind string) {
		testenv.NeedsAll(t, "it copies a MiB for each program: TestLongMessages has long messages")
	}, func(ctx context.Context, t *testing.T, box sandbox.Sandbox) {
		longEnvironments(ctx, t, box, !strings.HasSuffix(t.Name(), "/plain"))
	})
}

// besideWitness calls check with a container, a machine with boxd and one without, unless skip
// skips that kind of box. It expects that a session that was opened before stays.
func besideWitness(t *testing.T, skip func(t *testing.T, kind string),
	check func(context.Context, *testing.T, sandbox.Sandbox)) {
	for kind, open := range map[string]func(t *testing.T) sandbox.Sandbox{
		"container": func(t *testing.T) sandbox.Sandbox {
			testEngine(t)
			return newBox(t, Config{Image: testImage, Network: "none", PIDs: 4096,
				StartLimit: testenv.Limit})
		},
		"boxd": func(t *testing.T) sandbox.Sandbox {
			c := startSSHD(t).withBoxd()
			c.StartLimit = testenv.Limit
			return dialBoxd(t, c)
		},
		"plain": func(t *testing.T) sandbox.Sandbox {
			box, err := Dial(t.Context(), startSSHD(t).config())
			noError(t, err)
			t.Cleanup(func() { noError(t, box.Close()) })
			return box
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			skip(t, kind)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // against a hang
			defer cancel()
			box := open(t)
			// If the connection ended, this session would be lost on a plain sshd, and held up with
			// boxd.
			witness, err := box.Open(ctx)
			noError(t, err)
			_, err = witness.Execute(ctx, "sleep 1000", sandbox.Yield(time.Millisecond))
			noError(t, err)
			beside, err := box.Dial(ctx, "unix", "/nowhere")
			if err == nil {
				beside.Close()
				t.Error("Dial of /nowhere succeeded")
			}
			check(ctx, t, box)
			if r, err := witness.Wait(ctx, sandbox.Yield(time.Millisecond)); err != nil ||
				r.State != sandbox.Running {
				t.Errorf("the session that was opened first: %+v, %v", r, err)
			}
			if _, err := witness.Interrupt(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLongQuestions asks a box about many processes at once.
func TestLongQuestions(t *testing.T) {
	t.Parallel()
	h := testContainer(t, nil)
	pids := []int{1}
	for i := range 100_000 {
		pids = append(pids, 1<<30+i) // above the kernel's largest pid
	}
	if alive, err := h.Alive(t.Context(), pids...); err != nil || len(alive) != 1 {
		t.Errorf("of %d processes, these are alive: %v, %v", len(pids), alive, err)
	}
	if sent, err := h.Signal(t.Context(), pids[1:], "CONT"); err != nil || sent != 0 {
		t.Errorf("%d signals were sent to processes that do not exist, %v", sent, err)
	}
	ones := make([]int, 5000)
	for i := range ones {
		ones[i] = 1
	}
	if alive, err := h.Alive(t.Context(), ones...); err != nil || len(alive) == 0 {
		t.Errorf("asked about one process 5000 times: %d are alive, %v", len(alive), err)
	}
}

// longEnvironments opens sessions and begins jobs with long environments. takesAll says that the
// box takes all that Linux does.
func longEnvironments(ctx context.Context, t *testing.T, box sandbox.Sandbox, takesAll bool) {
	const MiB = 1024
	// The last is more than Linux takes, and more than one message holds.
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
			wantExited(t, r, err, fmt.Sprintf("1014 %d\n", kib))
			if r, err := s.Execute(ctx, leave); err != nil || r.Restarted != (leave != ":") {
				t.Errorf("%s in a session with %d KiB: %+v, %v", leave, kib, r, err)
			}
		}
		noError(t, s.Close())
		job, err := box.Background(ctx, "env | grep -c '^BIG_'; : "+strings.Repeat("x", 300<<10),
			sandbox.Env(largeEnv(kib)...))
		noError(t, err)
		r, err := job.Wait(ctx)
		wantExited(t, r, err, fmt.Sprintf("%d\n", kib))
	}
}

// longMessages calls each method with a long argument.
func longMessages(ctx context.Context, t *testing.T, box sandbox.Sandbox) {
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
			if err == nil && code != 0 { // on a plain sshd the shell reports the error
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
