package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An action is something that a service is to do with a box.
type action struct {
	N        int // of the request
	What, ID string
}

// An outcome is what came of it.
type outcome struct {
	N     int
	There bool
	Err   string
	Key   string // after a start
}

// do does it.
func do(ctx context.Context, s *Service, a action) (o outcome) {
	o.N = a.N
	var err error
	switch a.What {
	case "start":
		var i *Info
		if i, err = s.Start(ctx, StartOptions{ID: a.ID, Spec: specOf(a.ID),
			Env: []string{"BOX=" + a.ID}}); err == nil {
			o.Key = i.SessionKey
		}
	case "pause":
		err = s.Pause(ctx, a.ID)
	case "resume":
		err = s.Resume(ctx, a.ID)
	case "delete":
		err = s.Delete(ctx, a.ID)
	default:
		err = errors.New("what is " + a.What)
	}
	if !errors.Is(err, ErrNotFound) {
		o.There = err == nil
		if err != nil {
			o.Err = err.Error()
		}
	}
	return o
}

// otherSpecs are those of these tests: one with a pool, and one without.
func otherSpecs() []*Spec {
	return []*Spec{small("cold", nil), small("warm", func(s *Spec) { s.Warm = 1 })}
}

// specOf says which spec boxes of an id have.
func specOf(id string) string {
	if strings.HasPrefix(id, "warm") {
		return "warm"
	}
	return "cold"
}

// other is another process of the service: this test's binary, executed again. It does what it
// reads, and says what came of it, or does something at random until it is killed.
func other(what string) {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "the other process:", err)
			os.Exit(1)
		}
	}
	name, obey, _ := strings.Cut(what, " ")
	store, err := NewSpecs(otherSpecs()...)
	must(err)
	s, err := New(Config{Name: name, Specs: store, Secret: secret, Every: 100 * time.Millisecond})
	must(err)
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	if obey == "" {
		for i := range 4 {
			go func() {
				for {
					a := action{What: []string{"start", "start", "pause", "resume",
						"delete"}[rand.IntN(5)], ID: idAt(rand.IntN(3) + i)}
					o := do(context.Background(), s, a)
					mu.Lock()
					out.Encode(struct {
						action
						outcome
					}{a, o})
					mu.Unlock()
				}
			}()
		}
		select {}
	}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	var all sync.WaitGroup
	for {
		var a action
		if in.Decode(&a) != nil {
			break
		}
		all.Go(func() {
			o := do(context.Background(), s, a)
			mu.Lock()
			defer mu.Unlock()
			out.Encode(o)
		})
	}
	all.Wait()
	must(s.Close())
}

// idAt is the n-th id of these tests. Every second one is of boxes that come from a pool.
func idAt(n int) string { return []string{"cold", "warm"}[n%2] + fmt.Sprint(n) }

// A process is another process of the service.
type process struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Reader
	end func() // of its input

	mu      sync.Mutex
	n       int
	waiting map[int]chan outcome
}

// another starts it: one that obeys, or one that acts at random.
func another(t *testing.T, name, obey string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SANDSHELL_TEST_SERVICE="+strings.TrimSpace(name+" "+obey))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, in: json.NewEncoder(in), out: bufio.NewReader(out), end: func() {
		in.Close()
	}, waiting: map[int]chan outcome{}}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

// obeys has the process's answers come to those who wait for them, until it ends.
func (p *process) obeys() {
	answers := json.NewDecoder(p.out)
	for {
		var o outcome
		if answers.Decode(&o) != nil {
			return
		}
		p.mu.Lock()
		p.waiting[o.N] <- o
		delete(p.waiting, o.N)
		p.mu.Unlock()
	}
}

// do has the other process do something.
func (p *process) do(what, id string) outcome {
	answer := make(chan outcome, 1)
	p.mu.Lock()
	p.n++
	p.waiting[p.n] = answer
	err := p.in.Encode(action{p.n, what, id})
	p.mu.Unlock()
	if err != nil {
		return outcome{Err: err.Error()}
	}
	select {
	case o := <-answer:
		return o
	case <-time.After(2 * time.Minute):
		return outcome{Err: "the other process does not answer"}
	}
}
