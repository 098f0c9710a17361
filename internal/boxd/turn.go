//go:build linux

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// turnLimit bounds the wait for an owner's answer to a WantedRequest. An owner that does not answer
// loses its connections and must connect again.
const turnLimit = 10 * time.Second

// takeTurn makes o the owner that uses the program. If another owner has used it, wants must be
// set, and that owner must yield, unless it has no channel to the program. clean says that the
// other owner was idle.
func (p *program) takeTurn(o *owner, wants bool) (clean bool, err error) {
	limit := time.NewTimer(turnLimit)
	defer limit.Stop()
	silent := false
	for {
		p.mu.Lock()
		before := p.owner
		holder := p.attached[before]
		if wants && p.released {
			p.mu.Unlock()
			return false, os.ErrNotExist
		}
		own := before == o && wants && holder != nil // o has yielded, and comes back at once
		if before == o && !own || before == nil && wants || holder == nil && wants {
			clean = p.clean
			p.owner, p.clean = o, false
			p.mu.Unlock()
			return clean, nil
		}
		if !wants {
			p.mu.Unlock()
			return false, syscall.EBUSY
		}
		if p.note == "" && !own {
			p.mu.Unlock()
			return false, os.ErrNotExist
		}
		if own {
			changed := p.turn.Wait()
			p.mu.Unlock()
			select {
			case <-changed:
				continue
			case <-limit.C:
				return false, syscall.EBUSY
			}
		}
		p.asked++
		number, busy := p.asked, make(chan struct{})
		p.wanted[number] = busy
		changed := p.turn.Wait()
		p.mu.Unlock()
		forget := func() {
			p.mu.Lock()
			delete(p.wanted, number)
			p.mu.Unlock()
		}
		// in a goroutine: the connection may take nothing
		go holder.ch.SendRequest(wire.WantedRequest, false,
			ssh.Marshal(&wire.Wanted{Number: number}))
		select {
		case <-changed:
			forget()
		case <-busy:
			return false, syscall.EBUSY
		case <-limit.C:
			forget()
			if silent {
				return false, syscall.EBUSY
			}
			silent = true
			limit.Reset(turnLimit)
			p.s.log.Info("an owner does not answer: closing its connections")
			p.s.closeConns(func(c *conn) bool { return c.owner == before })
		}
	}
}

// yield answers a WantedRequest: the owner of a lets go of the program. The turn is free when all
// input that this owner has sent has been taken, at the end of its channel.
func (p *program) yield(a *attachment, y wire.Yield) {
	a.yields = &y
	go a.ch.Close() // it blocks while the connection takes nothing
}

// refuse answers a WantedRequest: the owner goes on using the program.
func (p *program) refuse(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if busy := p.wanted[number]; busy != nil {
		delete(p.wanted, number)
		close(busy)
	}
}

// mayUse reports whether an owner may use the program now.
func (p *program) mayUse(o *owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spooled || p.owner == o
}
