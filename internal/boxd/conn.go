//go:build linux

package main

import (
	"encoding/json"
	"os"
	"slices"
	"sync/atomic"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// A conn is a connection that has logged in.
type conn struct {
	*ssh.ServerConn
	raw      *bufferedConn
	s        *server
	owner    bool
	forwards forwards
	open     atomic.Int32 // channels
	flooded  atomic.Bool  // the client has asked for too many
}

// The most channels that one connection may have open.
const (
	ownerChannels = 100000
	guestChannels = 1000
)

// cut reports whether the connection has ended, so that the end of a channel need not be what the
// client has sent. It is known before any channel ends by that.
func (c *conn) cut() bool { return c.raw.ended.Load() }

// serve serves channels and requests until the connection's end. A person's ssh asks for its
// listeners (-R) before its session, and does not wait for the answers: a guest's channel begins
// when they are there. The owner waits itself, and has questions that take longer.
func (c *conn) serve(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	defer c.forwards.close()
	if c.owner {
		go c.requests(requests)
		requests = nil
	}
	for {
		select {
		case r, more := <-requests:
			if !more {
				requests = nil
				continue
			}
			c.answer(r)
		case ch, more := <-channels:
			if !more {
				return
			}
			for len(requests) > 0 { // they have come before it
				c.answer(<-requests)
			}
			if !c.enter() {
				ch.Reject(ssh.ResourceShortage, "too many channels")
				continue
			}
			go func() {
				defer c.open.Add(-1)
				c.channel(ch)
			}()
		}
	}
}

// enter counts a channel in c.open, and reports false if there are too many. Whoever ends the
// channel subtracts it.
func (c *conn) enter() bool {
	limit := int32(guestChannels)
	if c.owner {
		limit = ownerChannels
	}
	if c.open.Add(1) <= limit {
		return true
	}
	c.open.Add(-1)
	if !c.flooded.Swap(true) { // logged once: the log is on the engine's disk
		c.s.log.Warn("too many channels on a connection")
	}
	return false
}

// channel serves one channel to its end.
func (c *conn) channel(ch ssh.NewChannel) {
	switch kind := ch.ChannelType(); {
	case kind == "session":
		c.session(ch)
	case kind == "direct-tcpip":
		c.directTCP(ch)
	case kind == "direct-streamlocal@openssh.com":
		c.directUnix(ch)
	case c.owner && kind == wire.ProgramChannel:
		c.program(ch)
	case c.owner && kind == wire.AskChannel:
		c.ask(ch)
	case c.owner && kind == wire.PackChannel:
		c.pack(ch)
	case c.owner && kind == wire.UnpackChannel:
		c.unpack(ch)
	default:
		ch.Reject(ssh.UnknownChannelType, "unknown channel type")
	}
}

// requests answers global requests.
func (c *conn) requests(requests <-chan *ssh.Request) {
	for r := range requests {
		c.answer(r)
	}
}

func (c *conn) answer(r *ssh.Request) {
	ok, reply := c.request(r)
	if len(reply) > wire.MessageMax {
		ok, reply = false, []byte(wire.LongReply)
	}
	if r.WantReply {
		r.Reply(ok, reply)
	}
}

// ask answers a global request whose payload or reply is long, on a channel of its own.
func (c *conn) ask(newChannel ssh.NewChannel) {
	ch, requests, err := newChannel.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	go ssh.DiscardRequests(requests)
	payload, err := wire.ReadFrame(ch)
	if err != nil {
		return
	}
	ok, reply := c.request(&ssh.Request{Type: string(newChannel.ExtraData()), Payload: payload})
	wire.WriteFrame(ch, wire.EncodeAnswer(ok, reply))
}

func (c *conn) request(r *ssh.Request) (ok bool, reply []byte) {
	switch kind := r.Type; {
	case kind == "tcpip-forward", kind == "cancel-tcpip-forward",
		kind == "streamlocal-forward@openssh.com", kind == "cancel-streamlocal-forward@openssh.com":
		return c.forward(r)
	case !c.owner: // also refuses keepalive@openssh.com, whose sender is content with any answer
		return false, nil
	case kind == wire.ListRequest:
		list, err := json.Marshal(c.s.list())
		return err == nil, list
	case kind == wire.HoldRequest:
		var ids []string
		if json.Unmarshal(r.Payload, &ids) != nil {
			return false, nil
		}
		c.s.only(c)
		c.s.hold(ids)
		c.s.unlisten(func(l *listener) bool { return !slices.Contains(ids, l.id) })
		return true, nil
	case kind == wire.ListenRequest:
		address, err := c.s.listenFor(r.Payload)
		if err != nil {
			return false, wire.Fail(err).Encode()
		}
		return true, []byte(address)
	case kind == wire.ForgetRequest:
		c.s.forget(string(r.Payload))
		return true, nil
	case kind == wire.UnlistenRequest:
		c.s.unlisten(func(l *listener) bool { return l.id == string(r.Payload) })
		return true, nil
	case kind == wire.EndRequest && c.s.dir != "":
		c.s.vanish()
		r.Reply(true, nil)
		os.Exit(0)
	case kind == wire.GuestRequest:
		key, err := ssh.ParsePublicKey(r.Payload)
		if err != nil {
			return false, nil
		}
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.guests[string(key.Marshal())] = true
		return true, nil
	}
	answer, known, err := c.s.processes(r.Type, r.Payload)
	if err != nil {
		return false, []byte(err.Error())
	}
	if !known {
		return false, nil
	}
	reply, err = json.Marshal(answer)
	return err == nil, reply
}
