package faulttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A worker does the same work repeatedly, and checks the results.
type worker struct {
	*round
	work   work
	rng    *rand.Rand
	s      sandbox.Session // the worker's own; nil if it needs none
	counts int             // how many commands the session has counted; -1 if it counts none
	calls  int
}

// A work is a kind of work.
type work struct {
	name    string
	session bool
	resumes bool // a cut does not end it
	do      func(w *worker, ctx context.Context) error
}

var (
	executes = work{"Execute", true, true, (*worker).execute}
	answers  = work{"Input", true, true, (*worker).answer}
	jobs     = work{"Job", false, true, (*worker).job}
	runs     = work{"Run", false, true, (*worker).runCat}
	copies   = work{"Copy", false, false, (*worker).copy}
	dials    = work{"Dial", false, false, (*worker).dial}
)

// workers chooses the workers of a round, and opens their sessions.
func (r *round) workers(rng *rand.Rand) ([]*worker, error) {
	kinds := []work{executes, answers, jobs, runs, copies, dials}
	if r.blind {
		kinds = slices.DeleteFunc(kinds, func(w work) bool { return w.name == answers.name })
	}
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var workers []*worker
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	for i, kind := range append(kinds[:3], executes) {
		w := &worker{round: r, work: kind, rng: rand.New(rand.NewPCG(r.seed, uint64(i+1)))}
		switch {
		case i == 3:
			w.s = r.box
		case kind.session:
			s, err := r.box.Open(ctx)
			if err != nil {
				return workers, err
			}
			w.s = s
		}
		workers = append(workers, w)
	}
	return workers, nil
}

// once works once. It reports whether the call succeeded.
func (w *worker) once() bool {
	return w.try(w.work.name, w.work.resumes, func(ctx context.Context) error {
		return w.work.do(w, ctx)
	})
}

// loop works until it is told to stop, or fails.
func (w *worker) loop() {
	for {
		if !w.once() && (w.fault.lost() || w.s != nil) { // the session may have counted the command
			return
		}
		select {
		case <-w.stop:
			return
		case <-time.After(upTo(w.rng, 20*time.Millisecond)): // a pause, as a model makes
		}
	}
}

// recover checks that the worker's session works again.
func (w *worker) recover() {
	w.counts = -1
	w.try("the same session's "+executes.name, true, w.execute)
}

// tag returns a word that no other call uses.
func (w *worker) tag() string {
	w.calls++
	return fmt.Sprintf("%s-%d-%d", w.work.name, w.rng.Uint32(), w.calls)
}

// exited returns an error if a Result is not that of a command that printed want and exited with 0.
func exited(r *sandbox.Result, err error, want string) error {
	switch {
	case err != nil:
		return err
	case r.State == sandbox.Exited && r.ExitCode == 0 && !r.Restarted && r.Output == want:
		return nil
	case r.State == sandbox.Exited && r.ExitCode != 0, r.Restarted,
		strings.Contains(r.Output, "fork: "):
		return &killedError{fmt.Sprintf("status %d, restarted %v, %.300q", r.ExitCode, r.Restarted,
			r.Output)}
	}
	return mistakef("state %v, status %d, restarted %v, %d bytes of output %.300q, want %d bytes "+
		"%.300q", r.State, r.ExitCode, r.Restarted, len(r.Output), r.Output, len(want), want)
}

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// execute makes the shell count the command and print something.
func (w *worker) execute(ctx context.Context) error {
	tag, from := w.tag(), w.rng.IntN(10000)
	to := from + w.rng.IntN(3000)
	command, want := fmt.Sprintf("seq %d %d && echo %s", from, to, tag), numbers(from, to)+tag
	if w.counts >= 0 {
		w.counts++
		command, want = "N=$((N+1)); "+command+" $N", fmt.Sprintf("%s %d", want, w.counts)
	}
	r, err := w.s.Execute(ctx, command)
	return exited(r, err, want+"\n")
}

// answer executes a command that asks a question, and answers it.
func (w *worker) answer(ctx context.Context) error {
	tag := w.tag()
	r, err := w.s.Execute(ctx, `read -r -p "who? " x && echo "it is $x"`)
	if err == nil && r.State == sandbox.Exited {
		return exited(r, err, "")
	}
	if err == nil && (r.State != sandbox.Waiting || r.Output != "who? ") {
		return mistakef("asking: %+v", r)
	}
	if err != nil {
		return err
	}
	r, err = w.s.Input(ctx, tag+"\n")
	if errors.Is(err, sandbox.ErrIdle) && w.fault.kills { // the shell was killed in the meantime
		return &killedError{err.Error()}
	}
	return exited(r, err, tag+"\nit is "+tag+"\n")
}

// job runs a job that takes some time.
func (w *worker) job(ctx context.Context) error {
	tag, to := w.tag(), w.rng.IntN(20000)
	j, err := w.box.Background(ctx, fmt.Sprintf("sleep 0.0%d && seq %d && sleep 0.0%d && echo %s",
		w.rng.IntN(10), to, w.rng.IntN(10), tag))
	if err != nil {
		return err
	}
	r, err := j.Wait(ctx)
	if err := exited(r, err, numbers(1, to)+tag+"\n"); err != nil {
		return err
	}
	return j.Forget()
}

// runCat sends bytes through cat, and checks what comes back.
func (w *worker) runCat(ctx context.Context) error {
	in := w.bytes(1 << w.rng.IntN(21))
	var out, errs bytes.Buffer
	code, err := w.box.Run(ctx, &sandbox.Cmd{Args: []string{"cat"}, Stdin: bytes.NewReader(in),
		Stdout: &out, Stderr: &errs})
	switch {
	case err != nil:
		return err
	case code != 0:
		return &killedError{fmt.Sprintf("status %d, %q", code, errs.String())}
	case !bytes.Equal(out.Bytes(), in):
		return mistakef("%d bytes came back of %d, or others", out.Len(), len(in))
	}
	return nil
}

func (w *worker) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

// copy copies a file into the box, compares its checksum there, and copies it back.
func (w *worker) copy(ctx context.Context) error {
	data, name := w.bytes(1<<w.rng.IntN(22)), w.tag()
	sum := sha256.Sum256(data)
	file := filepath.Join(w.files, name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	defer os.Remove(file + "-back")
	if err := w.box.CopyTo(ctx, file, w.dir+"/"+name); err != nil {
		return err
	}
	var out bytes.Buffer
	code, err := w.box.Run(ctx, &sandbox.Cmd{Args: []string{"sha256sum", w.dir + "/" + name},
		Stdout: &out})
	if err == nil && code == 0 && !strings.HasPrefix(out.String(), hex.EncodeToString(sum[:])) {
		return mistakef("the copy in the box is not what was copied: %d bytes, %s", len(data),
			out.String())
	}
	if err := w.box.CopyFrom(ctx, w.dir+"/"+name, file+"-back"); err != nil {
		return err
	}
	back, err := os.ReadFile(file + "-back")
	if err != nil {
		return mistakef("the copy that came back: %v", err)
	}
	if !bytes.Equal(back, data) {
		return mistakef("%d bytes were copied back of %d, or others", len(back), len(data))
	}
	_, err = w.box.Run(ctx, &sandbox.Cmd{Args: []string{"rm", w.dir + "/" + name}})
	return err
}

// dial sends bytes to the echo server, and checks what comes back.
func (w *worker) dial(ctx context.Context) error {
	conn, err := w.box.Dial(ctx, "tcp", w.echo)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for range 1 + w.rng.IntN(10) {
		data := w.bytes(1 + w.rng.IntN(64<<10))
		go conn.Write(data) // if it fails, the read fails too
		back := make([]byte, len(data))
		if n, err := io.ReadFull(conn, back); err != nil {
			if w.fault.kills && errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) &&
				w.fault.kills {
				return &killedError{fmt.Sprintf("%d bytes came back of %d: %v", n, len(data), err)}
			}
			return err
		}
		if !bytes.Equal(back, data) {
			return mistakef("other bytes came back")
		}
	}
	return nil
}
