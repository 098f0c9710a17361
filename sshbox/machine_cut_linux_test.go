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

// What cuts the connection to a machine costs time and nothing else: the network, a restart of the
// sshd, the end of the process that serves the connection.
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
			ctx := limit(t)
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
				r.Output != "typed once\n"+seq(5000)+"typed once\n" {
				t.Errorf("state %v, %v, %d bytes", r.State, err, len(r.Output))
			}
			if d := time.Since(began); cut.name == "outage" && d < outage {
				t.Errorf("answered after %v, while there was no network", d)
			}
			if r, err := j.Wait(ctx); err != nil || r.ExitCode != 0 {
				t.Errorf("the job: %+v, %v", r, err)
			}
			if log := logOf(t, ctx, j); log != seq(30000) {
				t.Errorf("the job's log has %d bytes", len(log))
			}
			noError(t, j.Forget())
		})
	}
	if n := tell(t, box, "echo $N"); n != "4" {
		t.Errorf("N is %s: a command was lost, or came twice", n)
	}
}

// seq is what seq prints.
func seq(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

func logOf(t *testing.T, ctx context.Context, j sandbox.Job) string {
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

// A machine that has another host key than before is not reached again.
func TestBoxdHostKeyChanged(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	c.Linger = time.Second
	box, err := Dial(t.Context(), c)
	noError(t, err)
	tell(t, box, "echo here")
	s.ChangeHostKey(t)
	s.Restart(t)
	_, err = box.Execute(limit(t), "echo anyone?")
	var lost *sandbox.LostError
	var key *HostKeyError
	if !errors.As(err, &lost) || lost.Cause != sandbox.LostConnection || !errors.As(err, &key) {
		t.Errorf("got %v", err)
	}
	noError(t, box.Close()) // boxd ends by itself
	waitFor(t, "boxd's end", func() bool { return filesOf(t, c) == "boxd" })
}

// A boxd that was killed is said to be; the next Reap removes what it has left.
func TestBoxdKilled(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	box, err := Dial(t.Context(), c)
	noError(t, err)
	id, mark := box.BoxID(), box.Mark()
	pid, err := strconv.Atoi(tell(t, box, "(trap '' HUP; sleep 1000 &); echo $PPID"))
	noError(t, err)
	noError(t, syscall.Kill(pid, syscall.SIGKILL))
	_, err = box.Execute(limit(t), "echo anyone?")
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
		t.Error("nothing is left to be reaped")
	}
	if n, err := (Machine{DialConfig: c}).Reap(t.Context()); n != 1 || err != nil {
		t.Errorf("Reap: %d, %v", n, err)
	}
	if left, files := procfs.Marked(mark), filesOf(t, c); len(left) > 0 || files != "boxd" {
		t.Errorf("left are %v, %q", left, files)
	}
	if _, err := (Machine{DialConfig: c}).Attach(t.Context(), id); err == nil ||
		!strings.Contains(err.Error(), id) {
		t.Errorf("Attach: %v", err)
	}
}

// A machine that refuses a login is not asked again, by whatever the box does next.
func TestRefusedLoginIsFinal(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "LogLevel VERBOSE")
	proxied, line := s.Through(t)
	c := s.withBoxd()
	c.Address, c.Linger = proxied.Address, time.Second
	box, err := Dial(t.Context(), c)
	noError(t, err)
	tell(t, box, "echo here")
	keys := filepath.Join(s.Dir, "authorized_keys")
	noError(t, os.WriteFile(keys, nil, 0o644)) // the account is closed
	line.Cut()
	_, err = box.Execute(limit(t), "true")
	var lost *sandbox.LostError
	var refused *LoginError
	if !errors.As(err, &lost) || lost.Cause != sandbox.LostConnection || !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	_, err = box.Run(limit(t), &sandbox.Cmd{Args: []string{"true"}})
	if !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("Run: %v", err)
	}
	noError(t, box.Close())
	waitFor(t, "boxd's end", func() bool { return filesOf(t, c) == "boxd" })
	s.Stop()
	if n := strings.Count(s.Log(), "Failed publickey"); n != 1 {
		t.Errorf("%d logins were refused:\n%s", n, s.Log())
	}
}
