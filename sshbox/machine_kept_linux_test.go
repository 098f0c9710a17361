package sshbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/sandbox"
	"golang.org/x/crypto/ssh"
)

// A machineProgram is another program that has a box on a machine: this test's binary, executed
// again.
type machineProgram struct {
	Address, User, KeyFile string
	HostKey                []byte
	Boxd                   string
	Linger                 time.Duration
	Keep                   bool
	ID, Mark               string // it says these
}

const machineProgramIn = "SANDSHELL_TEST_MACHINE"

// start starts the program, and returns when its box has work under way.
func (p *machineProgram) start(t *testing.T) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestBoxdProgram$")
	text, err := json.Marshal(p)
	noError(t, err)
	cmd.Env = append(os.Environ(), machineProgramIn+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // its end is this test's
	noError(t, err)
	stdout, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
		stdin.Close()
	})
	t.Cleanup(kill)
	if line, err := bufio.NewReader(stdout).ReadBytes('\n'); err != nil ||
		json.Unmarshal(line, p) != nil {
		t.Fatalf("the other program says %q, %v", line, err)
	}
	return kill
}

// TestBoxdProgram is that other program.
func TestBoxdProgram(t *testing.T) {
	t.Parallel()
	text := os.Getenv(machineProgramIn)
	if text == "" {
		t.Skip("it is started by other tests")
	}
	var p machineProgram
	noError(t, json.Unmarshal([]byte(text), &p))
	key, err := ssh.ParsePublicKey(p.HostKey)
	noError(t, err)
	box, err := Dial(t.Context(), DialConfig{
		Address: p.Address, User: p.User, KeyFiles: []string{p.KeyFile},
		HostKey: ssh.FixedHostKey(key),
		Boxd:    p.Boxd, Linger: p.Linger, Keep: p.Keep, Env: []string{"FROM=config"},
	})
	noError(t, err)
	_, err = box.Background(t.Context(), "echo begun; read go; seq 1000; exit 7")
	noError(t, err)
	r, err := box.Execute(t.Context(), "cd /usr/share; X=kept; echo one; read go; echo $go $FROM")
	if err != nil || r.State != sandbox.Waiting {
		t.Fatalf("%+v, %v", r, err)
	}
	p.ID, p.Mark = box.BoxID(), box.Mark()
	said, err := json.Marshal(&p)
	noError(t, err)
	fmt.Println(string(said))
	os.Stdin.Read(make([]byte, 1)) // until it is killed
}

// program is another program's box on s.
func (s *sshd) program(keep bool) *machineProgram {
	c := s.withBoxd()
	return &machineProgram{
		Address: s.Address, User: s.User, KeyFile: s.KeyFile, HostKey: s.HostKey.Marshal(),
		Boxd: c.Boxd, Linger: time.Second, Keep: keep,
	}
}

// When a program is killed, its boxd ends by itself; one that is kept is taken over by another
// program, with all that goes on.
func TestBoxdAttach(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	ctx := limit(t)
	killed, kept := s.program(false), s.program(true)
	killed.start(t)()
	kept.start(t)()
	waitFor(t, "the end of what is not kept", func() bool {
		return len(procfs.Marked(killed.Mark)) == 0
	})
	waitFor(t, "the end of its directory", func() bool { return filesOf(t, c) == "box boxd" })

	list, err := Machine{DialConfig: c}.List(ctx)
	if err != nil || len(list) != 1 || list[0].ID != kept.ID || list[0].State != "running" ||
		!list[0].Keep || list[0].Age() > time.Hour {
		t.Fatalf("got %+v, %v", list, err)
	}
	if n, err := (Machine{DialConfig: c}).Reap(ctx); n != 0 || err != nil {
		t.Errorf("Reap: %d, %v", n, err)
	}
	first, err := Machine{DialConfig: c}.Attach(ctx, kept.ID)
	noError(t, err)
	r, err := first.Input(ctx, "on\n")
	exited(t, r, err, "one\non\non config\n")
	noError(t, first.Detach())
	box, err := Machine{DialConfig: c}.Attach(ctx, kept.ID)
	noError(t, err)
	if got := tell(t, box, "echo $X $PWD"); got != "kept /usr/share" {
		t.Errorf("got %q", got)
	}
	j := box.Jobs()[0]
	noError(t, j.Input(ctx, "go\n"))
	if r, err := j.Wait(ctx); err != nil || r.ExitCode != 7 {
		t.Errorf("the job: %+v, %v", r, err)
	}
	if log := logOf(t, ctx, j); log != "begun\ngo\n"+seq(1000) {
		t.Errorf("the job's log is %q", log)
	}

	// Whoever attaches takes the box from its owner.
	other, err := Machine{DialConfig: c}.Attach(ctx, kept.ID)
	noError(t, err)
	var lost *sandbox.LostError
	if _, err := box.Execute(ctx, "echo mine?"); !errors.As(err, &lost) ||
		lost.Cause != sandbox.LostTaken {
		t.Errorf("got %v", err)
	}
	noError(t, box.Close())
	if got := tell(t, other, "echo $X"); got != "kept" {
		t.Errorf("got %q", got)
	}
	noError(t, other.Close())
	if left, files := procfs.Marked(kept.Mark), filesOf(t, c); len(left) > 0 || files != "boxd" {
		t.Errorf("left are %v, %q", left, files)
	}
}
