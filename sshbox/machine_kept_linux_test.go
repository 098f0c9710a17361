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

// A machineProgram is another program that has a box on a machine: this test binary, executed
// again.
type machineProgram struct {
	Address, User, KeyFile string
	HostKey                []byte
	Boxd                   string
	Linger                 time.Duration
	Keep                   bool
	ID, Mark               string // set by the program, in its answer
}

// machineProgramEnv is the variable by which TestBoxdProgram gets its machineProgram.
const machineProgramEnv = "SANDSHELL_TEST_MACHINE"

// start starts the program, and returns when commands are running in its box.
func (p *machineProgram) start(t *testing.T) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestBoxdProgram$")
	text, err := json.Marshal(p)
	noError(t, err)
	cmd.Env = append(os.Environ(), machineProgramEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // the program ends when this test does
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
		t.Fatalf("the other program printed %q, %v", line, err)
	}
	return kill
}

// TestBoxdProgram is the program that start starts.
func TestBoxdProgram(t *testing.T) {
	t.Parallel()
	text := os.Getenv(machineProgramEnv)
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
	answer, err := json.Marshal(&p)
	noError(t, err)
	fmt.Println(string(answer))
	os.Stdin.Read(make([]byte, 1)) // until it is killed
}

// newProgram describes a program with a box on s.
func (s *sshd) newProgram(keep bool) *machineProgram {
	c := s.withBoxd()
	return &machineProgram{
		Address: s.Address, User: s.User, KeyFile: s.KeyFile, HostKey: s.HostKey.Marshal(),
		Boxd: c.Boxd, Linger: time.Second, Keep: keep,
	}
}

// TestBoxdAttach kills two programs. The boxd of the first ends by itself. The box of the second is
// kept: another program attaches to it, and finds all that is running.
func TestBoxdAttach(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	ctx := testContext(t)
	killed, kept := s.newProgram(false), s.newProgram(true)
	killed.start(t)()
	kept.start(t)()
	waitFor(t, "the end of the box that is not kept", func() bool {
		return len(procfs.Marked(killed.Mark)) == 0
	})
	waitFor(t, "the end of its directory", func() bool { return boxdFiles(t, c) == "box boxd" })

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
	wantExited(t, r, err, "one\non\non config\n")
	noError(t, first.Detach())
	box, err := Machine{DialConfig: c}.Attach(ctx, kept.ID)
	noError(t, err)
	if got := output(t, box, "echo $X $PWD"); got != "kept /usr/share" {
		t.Errorf("got %q", got)
	}
	j := box.Jobs()[0]
	noError(t, j.Input(ctx, "go\n"))
	if r, err := j.Wait(ctx); err != nil || r.ExitCode != 7 {
		t.Errorf("the job: %+v, %v", r, err)
	}
	if log := jobLog(t, ctx, j); log != "begun\ngo\n"+seqOutput(1000) {
		t.Errorf("the job's log is %q", log)
	}

	// A program that attaches takes the box from its owner.
	other, err := Machine{DialConfig: c}.Attach(ctx, kept.ID)
	noError(t, err)
	var lost *sandbox.LostError
	if _, err := box.Execute(ctx, "echo mine?"); !errors.As(err, &lost) ||
		lost.Cause != sandbox.LostTaken {
		t.Errorf("got %v", err)
	}
	noError(t, box.Close())
	if got := output(t, other, "echo $X"); got != "kept" {
		t.Errorf("got %q", got)
	}
	noError(t, other.Close())
	if left, files := procfs.Marked(kept.Mark), boxdFiles(t, c); len(left) > 0 || files != "boxd" {
		t.Errorf("Close has left processes %v and files %q", left, files)
	}
}
