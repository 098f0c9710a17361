//go:build linux

package sshbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A worker uses a box, and checks its answers. Each method that takes a context alone is a task.
type worker struct {
	s     *soak
	box   *DockerSSHBox
	r     *rand.Rand
	dir   string
	count int
	base  string // not empty when the shell has a count
	first bool   // the first round
}

// upTo returns a number from 0 to most: in the first round most, so that buffers have the size that
// they keep.
func (w *worker) upTo(most int) int {
	if w.first {
		return most
	}
	return w.r.IntN(most + 1)
}

// expect executes a command that must succeed with this output.
func (w *worker) expect(ctx context.Context, command, want string) error {
	r, err := w.box.Execute(ctx, command)
	if err != nil || r.Output != want || r.ExitCode != 0 {
		return fmt.Errorf("%s: want %.100q, got %+v, %v", command, want, r, err)
	}
	return nil
}

// countUp adds one to a variable of the shell.
func (w *worker) countUp(ctx context.Context) error {
	if w.base == "" {
		w.base = "set"
		if err := w.expect(ctx, "n=0", ""); err != nil {
			return err
		}
	}
	w.count++
	return w.expect(ctx, "echo $((n += 1))", fmt.Sprintln(w.count))
}

// printLines prints many lines: at most more than a session keeps for Screen (256 KiB).
func (w *worker) printLines(ctx context.Context) error {
	n := w.upTo(45000)
	var want strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&want, i)
	}
	return w.expect(ctx, fmt.Sprint("seq ", n), want.String())
}

// answerPrompt answers a question.
func (w *worker) answerPrompt(ctx context.Context) error {
	r, err := w.box.Execute(ctx, `read -p "name? " name; echo "hello $name"`)
	if err != nil || r.State != sandbox.Waiting {
		return fmt.Errorf("a question: %+v, %v", r, err)
	}
	if r, err = w.box.Input(ctx, "you\n"); err != nil ||
		!strings.HasSuffix(r.Output, "hello you\n") {
		return fmt.Errorf("an answer: %+v, %v", r, err)
	}
	return nil
}

// runCat passes random bytes through a Run of cat.
func (w *worker) runCat(ctx context.Context) error {
	in := make([]byte, w.upTo(1<<20))
	for i := range in {
		in[i] = byte(w.r.Uint32())
	}
	var out bytes.Buffer
	code, err := w.box.Run(ctx, &sandbox.Cmd{Args: []string{"cat"}, Stdin: bytes.NewReader(in),
		Stdout: &out})
	if code != 0 || err != nil || !bytes.Equal(in, out.Bytes()) {
		return fmt.Errorf("run cat: %d, %v, %d of %d bytes", code, err, out.Len(), len(in))
	}
	return nil
}

// copyFile copies random bytes to the box and back.
func (w *worker) copyFile(ctx context.Context) error {
	there, back := filepath.Join(w.dir, "there"), filepath.Join(w.dir, "back")
	defer os.Remove(back)
	data := make([]byte, w.upTo(2<<20))
	for i := range data {
		data[i] = byte(w.r.Uint32())
	}
	if err := os.WriteFile(there, data, 0o600); err != nil {
		return err
	}
	if err := w.box.CopyTo(ctx, there, "/tmp/there"); err != nil {
		return err
	}
	if err := w.box.CopyFrom(ctx, "/tmp/there", back); err != nil {
		return err
	}
	got, err := os.ReadFile(back)
	if err != nil || sha256.Sum256(got) != sha256.Sum256(data) {
		return fmt.Errorf("copied %d bytes, %d came back: %v", len(data), len(got), err)
	}
	return nil
}

// readLog reads the log of a job.
func (w *worker) readLog(ctx context.Context) error {
	j, err := w.box.Background(ctx, "for i in 1 2 3 4 5; do seq 500; sleep 0.02; done")
	if err != nil {
		return err
	}
	if _, err := j.Wait(ctx); err != nil {
		return err
	}
	var log bytes.Buffer
	for next := int64(0); ; {
		data, after, err := j.Logs(ctx, next)
		if err != nil {
			return err
		}
		if after == next {
			break
		}
		log.Write(data)
		next = after
	}
	var want bytes.Buffer
	for range 5 {
		for i := range 500 {
			fmt.Fprintln(&want, i+1)
		}
	}
	if !bytes.Equal(log.Bytes(), want.Bytes()) {
		return fmt.Errorf("a log of %d bytes, want %d", log.Len(), want.Len())
	}
	return j.Forget()
}

// interruptSleep interrupts a command.
func (w *worker) interruptSleep(ctx context.Context) error {
	r, err := w.box.Execute(ctx, "echo begun; sleep 100", sandbox.Tee(io.Discard),
		sandbox.Yield(50*time.Millisecond))
	if err != nil || r.State != sandbox.Running {
		return fmt.Errorf("yield: %+v, %v", r, err)
	}
	// 143: on a busy machine, both interrupts may come before sleep has begun, and SIGTERM ends
	// it.
	if r, err = w.box.Interrupt(ctx); err != nil || r.ExitCode != 130 && r.ExitCode != 143 ||
		r.Restarted {
		return fmt.Errorf("interrupt: %+v, %v", r, err)
	}
	return nil
}
