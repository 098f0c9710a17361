package sshbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestBoxdCuts cuts the connection to a machine in several ways: at the network, by a restart of
// the sshd, and by killing the process that serves the connection. Nothing is lost or repeated.
func TestBoxdCuts(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	proxied, line := s.Through(t)
	c := s.withBoxd()
	c.Address = proxied.Address
	box := dialBoxd(t, c)
	outage := time.Second
	if testenv.All() {
		outage = 20 * time.Second
	}
	for _, cut := range []struct {
		name string
		do   func()
	}{
		{"cut", line.Cut},
		{"outage", func() {
			line.Down()
			time.AfterFunc(outage, line.Up)
		}},
		{"restart", func() { s.Restart(t) }},
		{"session killed", func() {
			for _, pid := range s.Sessions() {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}},
	} {
		t.Run(cut.name, func(t *testing.T) {
			ctx := testContext(t)
			j, err := box.Background(ctx, "seq 30000")
			noError(t, err)
			r, err := box.Execute(ctx, "N=$((N+1)); echo $N; read x; seq 5000; echo $x")
			if err != nil || r.State != sandbox.Waiting || !strings.HasSuffix(r.Output, "\n") {
				t.Fatalf("%+v, %v", r, err)
			}
			began := time.Now()
			cut.do()
			r, err = box.Input(ctx, "typed once\n")
			if err != nil || r.State != sandbox.Exited ||
				r.Output != "typed once\n"+seqOutput(5000)+"typed once\n" {
				t.Errorf("state %v, %v, %d bytes", r.State, err, len(r.Output))
			}
			if d := time.Since(began); cut.name == "outage" && d < outage {
				t.Errorf("answered after %v, during the outage", d)
			}
			if r, err := j.Wait(ctx); err != nil || r.ExitCode != 0 {
				t.Errorf("the job: %+v, %v", r, err)
			}
			if log := jobLog(t, ctx, j); log != seqOutput(30000) {
				t.Errorf("the job's log has %d bytes", len(log))
			}
			noError(t, j.Forget())
		})
	}
	if n := output(t, box, "echo $N"); n != "4" {
		t.Errorf("N is %s: a command was lost, or ran twice", n)
	}
}

// seqOutput returns what the command seq prints.
func seqOutput(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// jobLog returns the log of a job that has ended.
func jobLog(t *testing.T, ctx context.Context, j sandbox.Job) string {
	t.Helper()
	var log strings.Builder
	for offset := int64(0); ; {
		data, next, err := j.Logs(ctx, offset)
		noError(t, err)
		if len(data) == 0 {
			return log.String()
		}
		log.Write(data)
		offset = next
	}
}

// TestBoxdHostKeyChanged shows that a box does not reconnect to a machine whose host key has
// changed.
func TestBoxdHostKeyChanged(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	c.Linger = time.Second
	box, err := Dial(t.Context(), c)
	noError(t, err)
	output(t, box, "echo here")
	s.ChangeHostKey(t)
	s.Restart(t)
	_, err = box.Execute(testContext(t), "echo anyone?")
	var lost *sandbox.LostError
	var key *HostKeyError
	if !errors.As(err, &lost) || lost.Cause != sandbox.LostConnection || !errors.As(err, &key) {
		t.Errorf("got %v", err)
	}
	noError(t, box.Close()) // boxd ends by itself
	waitFor(t, "boxd's end", func() bool { return boxdFiles(t, c) == "boxd" })
}

// TestBoxdKilled kills boxd. The error says so, and the next Reap removes what boxd has left.
func TestBoxdKilled(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	box, err := Dial(t.Context(), c)
	noError(t, err)
	id, mark := box.BoxID(), box.Mark()
	pid, err := strconv.Atoi(output(t, box, "(trap '' HUP; sleep 1000 &); echo $PPID"))
	noError(t, err)
	noError(t, syscall.Kill(pid, syscall.SIGKILL))
	_, err = box.Execute(testContext(t), "echo anyone?")
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || lost.Cause != sandbox.LostRemoved ||
		!strings.Contains(lost.Reason, "boxd has ended") {
		t.Errorf("got %v", err)
	}
	noError(t, box.Close())
	list, err := Machine{DialConfig: c}.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].State != "dead" ||
		list[0].Owner.PID != os.Getpid() {
		t.Errorf("got %+v, %v", list, err)
	}
	if left := procfs.Marked(mark); len(left) == 0 {
		t.Error("boxd has left no processes for Reap")
	}
	if n, err := (Machine{DialConfig: c}).Reap(t.Context()); n != 1 || err != nil {
		t.Errorf("Reap: %d, %v", n, err)
	}
	if left, files := procfs.Marked(mark), boxdFiles(t, c); len(left) > 0 || files != "boxd" {
		t.Errorf("Reap has left processes %v and files %q", left, files)
	}
	if _, err := (Machine{DialConfig: c}).Attach(t.Context(), id); err == nil ||
		!strings.Contains(err.Error(), id) {
		t.Errorf("Attach: %v", err)
	}
}

// TestRefusedLoginIsFinal shows that a box tries no more logins after a machine has refused one.
func TestRefusedLoginIsFinal(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "LogLevel VERBOSE")
	proxied, line := s.Through(t)
	c := s.withBoxd()
	c.Address, c.Linger = proxied.Address, time.Second
	box, err := Dial(t.Context(), c)
	noError(t, err)
	output(t, box, "echo here")
	keys := filepath.Join(s.Dir, "authorized_keys")
	noError(t, os.WriteFile(keys, nil, 0o644)) // the account is closed
	line.Cut()
	_, err = box.Execute(testContext(t), "true")
	var lost *sandbox.LostError
	var refused *LoginError
	if !errors.As(err, &lost) || lost.Cause != sandbox.LostConnection || !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	_, err = box.Run(testContext(t), &sandbox.Cmd{Args: []string{"true"}})
	if !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("Run: %v", err)
	}
	noError(t, box.Close())
	waitFor(t, "boxd's end", func() bool { return boxdFiles(t, c) == "boxd" })
	s.Stop()
	if n := strings.Count(s.Log(), "Failed publickey"); n != 1 {
		t.Errorf("%d logins were refused:\n%s", n, s.Log())
	}
}
