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

// A conn is a connection whose client has logged in.
type conn struct {
	ssh.Conn
	raw      *bufferedConn
	s        *server
	role     string // ownerRole or guestRole
	key      string // the client's, in SSH's wire format
	owner    *owner // nil for a guest
	forwards forwards
	channels atomic.Int32 // how many are open
	flooded  atomic.Bool  // the client has asked for too many
}

// The greatest number of channels that one connection may have open.
const (
	ownerChannels = 100000
	guestChannels = 1000
)

// cut reports whether the connection has ended. Then the end of a channel need not be the end of
// what the client has sent. If that ends a channel, cut is already true when the channel ends.
func (c *conn) cut() bool { return c.raw.ended.Load() }

// serve serves channels and requests until the connection ends. A person's ssh asks for its
// listeners (-R) before its session, and does not wait for the answers. So a guest's channel begins
// when these requests have been answered. The owner's channels do not wait: its client itself waits
// for answers, and some of them take long.
func (c *conn) serve(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	defer c.forwards.close()
	if c.owner != nil {
		go c.serveRequests(requests)
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
			for len(requests) > 0 { // they came before the channel
				c.answer(<-requests)
			}
			if !c.countChannel() {
				ch.Reject(ssh.ResourceShortage, "too many channels")
				continue
			}
			go func() {
				defer c.channels.Add(-1)
				c.serveChannel(ch)
			}()
		}
	}
}

// countChannel counts a channel in c.channels. It reports false if there are too many. The caller
// subtracts the channel when it ends.
func (c *conn) countChannel() bool {
	limit := int32(guestChannels)
	if c.owner != nil {
		limit = ownerChannels
	}
	if c.channels.Add(1) <= limit {
		return true
	}
	c.channels.Add(-1)
	if !c.flooded.Swap(true) { // log it once: the log is on the engine's disk
		c.s.log.Warn("too many channels on a connection")
	}
	return false
}

// serveChannel serves one channel to its end.
func (c *conn) serveChannel(ch ssh.NewChannel) {
	switch kind := ch.ChannelType(); {
	case kind == "session":
		c.serveSession(ch)
	case kind == "direct-tcpip":
		c.directTCP(ch)
	case kind == "direct-streamlocal@openssh.com":
		c.directUnix(ch)
	case c.owner != nil && kind == wire.ProgramChannel:
		c.serveProgram(ch)
	case c.owner != nil && kind == wire.AskChannel:
		c.serveAsk(ch)
	case c.owner != nil && kind == wire.PackChannel:
		c.servePack(ch)
	case c.owner != nil && kind == wire.UnpackSmallChannel:
		c.serveUnpackSmall(ch)
	case c.owner != nil && kind == wire.UnpackChannel:
		c.serveUnpack(ch)
	default:
		ch.Reject(ssh.UnknownChannelType, "unknown channel type")
	}
}

// serveRequests answers global requests.
func (c *conn) serveRequests(requests <-chan *ssh.Request) {
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

// serveAsk serves an AskChannel: a global request whose payload or reply is too long for a message.
func (c *conn) serveAsk(newChannel ssh.NewChannel) {
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
	case c.owner == nil: // this refuses keepalive@openssh.com too, whose sender takes any answer
		return false, nil
	case kind == wire.ListRequest:
		var shared bool
		json.Unmarshal(r.Payload, &shared)
		list, err := json.Marshal(c.s.list(c.owner, shared))
		return err == nil, list
	case kind == wire.HoldRequest:
		var ids []string
		if json.Unmarshal(r.Payload, &ids) != nil {
			return false, nil
		}
		c.s.closeConns(func(other *conn) bool { return other.owner == c.owner && other != c })
		c.s.releaseOthers(c.owner, ids)
		c.s.unlisten(func(l *listener) bool {
			return l.owner == c.owner && !slices.Contains(ids, l.id)
		})
		return true, nil
	case kind == wire.LeaveRequest:
		r.Reply(true, nil)
		r.WantReply = false
		c.s.dropOwners(c.owner)
		return true, nil
	case kind == wire.ListenRequest:
		address, err := c.s.listenForOwner(c.owner, r.Payload)
		if err != nil {
			return false, wire.Fail(err).Encode()
		}
		return true, []byte(address)
	case kind == wire.IdentityRequest:
		var identity wire.Identity
		if json.Unmarshal(r.Payload, &identity) != nil || c.s.dir != "" {
			return false, nil
		}
		changed, err := json.Marshal(c.s.takeIdentity(identity))
		return err == nil, changed
	case kind == wire.ForgetRequest:
		c.s.forgetProgram(c.owner, string(r.Payload))
		return true, nil
	case kind == wire.UnlistenRequest:
		c.s.unlisten(func(l *listener) bool {
			return l.id == string(r.Payload) && l.owner == c.owner
		})
		return true, nil
	case kind == wire.EndRequest && c.s.dir != "":
		c.s.destroy()
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
	answer, known, err := c.s.answerQuestion(c.owner, r.Type, r.Payload)
	if err != nil {
		return false, []byte(err.Error())
	}
	if !known {
		return false, nil
	}
	reply, err = json.Marshal(answer)
	return err == nil, reply
}
