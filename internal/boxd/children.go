//go:build linux

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/programs"
)

// Children are the programs that boxd has started. As process 1, boxd also inherits all orphans,
// and must wait for each process that ends. One goroutine waits for any process, and passes each
// child its status. (If os/exec waited for its own children too, each of the two would take
// statuses that the other needs.)
type children struct {
	mu    sync.Mutex // held while a child is started, until it is in known
	known map[int]*child
	none  *sync.Cond // signalled when no child is left
	score *oomScore  // nil: each has boxd's own
	fork  forker     // nil: any thread forks
}

// A child is a program that runs.
type child struct {
	pid    int
	ended  chan struct{} // closed when status is set
	status syscall.WaitStatus
}

// A forker calls a function that forks, on a thread of its own choice.
type forker func(fork func() (pid int, err error)) (pid int, err error)

func newChildren() *children {
	c := &children{known: map[int]*child{}}
	c.none = sync.NewCond(&c.mu)
	return c
}

// reap waits for children. It never returns.
func (c *children) reap() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	for {
		c.collect()
		<-died
	}
}

func (c *children) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if child := c.known[pid]; child != nil {
			delete(c.known, pid)
			child.status = status
			close(child.ended)
			if len(c.known) == 0 {
				c.none.Broadcast()
			}
		}
	}
}

// start starts a program on these streams, as the leader of a new session. If terminal is set, the
// outputs are the controlling terminal of that session.
func (c *children) start(p *prepared, streams [3]*os.File, terminal bool) (*child, error) {
	attr := &syscall.ProcAttr{Dir: p.dir, Env: p.env,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Ctty: 1,
			Credential: p.as.Credential()}}
	if err := programs.Give(attr.Sys.Credential, streams, terminal); err != nil {
		return nil, err
	}
	for _, f := range streams {
		attr.Files = append(attr.Files, f.Fd())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fork := func() (int, error) { return syscall.ForkExec(p.path, p.args, attr) }
	if c.fork != nil {
		unbound := fork
		fork = func() (int, error) { return c.fork(unbound) }
	}
	pid, err := c.score.whileStarting(fork)
	if err != nil {
		return nil, err
	}
	child := &child{pid: pid, ended: make(chan struct{})}
	c.known[pid] = child
	return child, nil
}

// signal sends a signal to the process group that the child leads. If the child has been waited
// for, another process may have its id, so nothing is sent and the error is os.ErrProcessDone.
func (c *children) signal(child *child, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[child.pid] != child {
		return os.ErrProcessDone
	}
	return syscall.Kill(-child.pid, sig)
}

// each calls f for each child. No child is waited for during the call, so each pid is still that of
// the child.
func (c *children) each(f func(pid int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid := range c.known {
		f(pid)
	}
}

// wait returns when all children have ended.
func (c *children) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.known) > 0 {
		c.none.Wait()
	}
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		f.Close()
	}
}
