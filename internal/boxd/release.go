//go:build linux

package main

import (
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// release is called when the owner no longer needs the program. The terminal hangs up, the pipes
// are closed, and boxd forgets the program when it ends.
func (p *program) release() {
	p.mu.Lock()
	p.released = true
	p.mu.Unlock()
	p.in.stop()
	p.out.close()
	if p.commands != nil {
		p.commands.stop()
		p.pipe.Close() // a blocked write returns
	}
	if p.master != nil {
		p.master.Close()
	}
	if p.err != nil {
		p.err.close()
	}
	p.forgetIfDone()
}

// forgetIfDone forgets the program if it has ended and is not kept.
func (p *program) forgetIfDone() {
	p.mu.Lock()
	kept := !p.released || p.keepsLogLocked() || p.spooled && len(p.attached) > 0
	p.mu.Unlock()
	select {
	case <-p.child.ended:
	default:
		return
	}
	if kept {
		return
	}
	p.s.mu.Lock()
	_, there := p.s.programs[p.id]
	delete(p.s.programs, p.id)
	p.s.mu.Unlock()
	if there {
		p.freeOutputs()
	}
}

// keepsLogLocked reports whether the program's output is kept after its release. That is so for a
// job's log in a box that outlives its owner, because the next owner may read it.
func (p *program) keepsLogLocked() bool {
	return p.out.spool != nil && p.s.keeps.Load() && !p.forgotten
}

// forgetProgram releases a program, and keeps none of its output. An owner asks for it when a job's
// command has ended. The job's shell may then still be about to end. An owner also asks for it to
// close a session that another owner has used last.
func (s *server) forgetProgram(o *owner, id string) {
	s.mu.Lock()
	p := s.programs[id]
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.forgotten = true
	var others []*attachment
	for other, a := range p.attached {
		if other != o && !p.spooled {
			others = append(others, a)
		}
	}
	p.mu.Unlock()
	tellGone(others)
	p.release()
}

// goneLimit bounds the time that tellGone waits for connections that take nothing.
const goneLimit = time.Second

// tellGone tells owners that another one ends the program. They must not take the end for the
// program's own, so tellGone returns when that was sent, or after goneLimit.
func tellGone(attached []*attachment) {
	var telling sync.WaitGroup
	for _, a := range attached {
		telling.Go(func() { a.ch.SendRequest(wire.GoneRequest, false, nil) })
	}
	told := make(chan struct{})
	go func() { telling.Wait(); close(told) }()
	select {
	case <-told:
	case <-time.After(goneLimit):
	}
}

// releaseOthers releases all programs of an owner but those with these ids.
func (s *server) releaseOthers(o *owner, ids []string) {
	s.mu.Lock()
	var others []*program
	for id, p := range s.programs {
		p.mu.Lock()
		if p.owner == o && !slices.Contains(ids, id) {
			others = append(others, p)
		}
		p.mu.Unlock()
	}
	s.mu.Unlock()
	for _, p := range others {
		p.release()
	}
}
