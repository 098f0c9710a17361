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

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// An action is a call of a method about a box.
type action struct {
	N        int // of the request
	What, ID string
	// of "execute" and "wait"
	Session, Command string
}

// An outcome is the result of an action.
type outcome struct {
	N     int    // of the request
	There bool   // the box existed
	Err   string // if it is not ErrNotFound
	Key   string // after a start
	// after "open", "execute" and "wait"
	Session, Output string
	Exit            int
	Busy            bool // ErrBusy
	Idle            bool // ErrIdle
}

// forks is how many copies the action "fork" makes.
const forks = 3

// do performs an action.
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
	case "fork":
		_, err = s.Fork(ctx, a.ID, forks, ForkOptions{})
	case "open", "execute", "wait":
		err = o.use(ctx, s, a)
	default:
		err = errors.New("there is no action " + a.What)
	}
	if !errors.Is(err, ErrNotFound) {
		o.There = err == nil
		if err != nil {
			o.Err = err.Error()
		}
	}
	return o
}

// use performs an action in a box.
func (o *outcome) use(ctx context.Context, s *Service, a action) error {
	box, err := s.Open(ctx, a.ID)
	if err != nil {
		return err
	}
	if a.What == "open" {
		opened, err := box.Open(ctx)
		if err == nil {
			o.Session = opened.ID()
		}
		return err
	}
	session, ok := box.Session(a.Session)
	if !ok {
		return errors.New("there is no session " + a.Session)
	}
	var r *sandbox.Result
	if a.What == "execute" {
		r, err = session.Execute(ctx, a.Command)
	} else {
		r, err = session.Wait(ctx)
	}
	o.Busy, o.Idle = errors.Is(err, sandbox.ErrBusy), errors.Is(err, sandbox.ErrIdle)
	if o.Busy || o.Idle {
		return nil
	}
	if err == nil {
		o.Output, o.Exit = r.Output, r.ExitCode
	}
	return err
}

// otherSpecs returns two specs, without a pool and with one.
func otherSpecs() []*Spec {
	return []*Spec{small("cold", nil), small("warm", func(s *Spec) { s.Warm = 1 })}
}

// specOf returns the spec of an id of idAt.
func specOf(id string) string {
	for _, spec := range []string{"warm", "exit"} {
		if strings.HasPrefix(id, spec) {
			return spec
		}
	}
	return "cold"
}

// runOther is the main function of another process of the service: this test binary, started again.
// If what ends with "obeys", it performs the actions that it reads, and writes the outcomes. Else
// it performs random actions until it is killed.
func runOther(what string) {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "the other process:", err)
			os.Exit(1)
		}
	}
	name, obey, _ := strings.Cut(what, " ")
	specs := otherSpecs()
	c := Config{Name: name, Secret: secret, Every: 100 * time.Millisecond}
	if at := os.Getenv(outsideVariable); at != "" {
		specs = append(specs, exitSpec(nil))
		c.Egress = leadTo(strings.Split(at, " "))
	}
	var err error
	c.Specs, err = NewSpecs(specs...)
	must(err)
	s, err := New(c)
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

// idAt returns the nth id of these tests. The boxes of every second one come from a pool.
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
	gone    chan struct{} // closed when readOutcomes returns
}

// processEnded is the error of an action whose outcome the process has not told.
const processEnded = "the other process has ended"

// startOther starts another process, with more variables. obey is "obeys" or "".
func startOther(t *testing.T, name, obey string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SANDSHELL_TEST_SERVICE="+strings.TrimSpace(name+" "+obey))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, in: json.NewEncoder(in), out: bufio.NewReader(out), end: func() {
		in.Close()
	}, waiting: map[int]chan outcome{}, gone: make(chan struct{})}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

// readOutcomes passes the outcomes on to the calls of do, until the process ends.
func (p *process) readOutcomes() {
	defer close(p.gone)
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

// do has the other process perform an action.
func (p *process) do(what, id string) outcome { return p.perform(action{What: what, ID: id}) }

// perform has the other process perform an action.
func (p *process) perform(a action) outcome {
	answer := make(chan outcome, 1)
	p.mu.Lock()
	p.n++
	p.waiting[p.n] = answer
	a.N = p.n
	err := p.in.Encode(a)
	p.mu.Unlock()
	if err != nil {
		return outcome{Err: processEnded}
	}
	select {
	case o := <-answer:
		return o
	case <-p.gone:
		select {
		case o := <-answer:
			return o
		default:
			return outcome{Err: processEnded}
		}
	case <-time.After(2 * time.Minute):
		return outcome{Err: "the other process does not answer"}
	}
}
