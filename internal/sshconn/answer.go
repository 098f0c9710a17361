package sshconn

import (
	"errors"

	"golang.org/x/crypto/ssh"
)

// answersMax bounds the memory for answers that the server does not take: some thousand usual ones.
// answerCost is what one takes beside what it answers: a goroutine, and a channel of x/crypto's.
const (
	answersMax = 8 << 20
	answerCost = 8 << 10
)

var errFlood = errors.New("the server asks on and on, and takes no answers")

// Answer runs f, which answers a message of that size, and does not wait for it. If the server
// leaves too much unanswered, it ends the connection.
func (c *Conn) Answer(size int, f func()) {
	cost := int64(size) + answerCost
	if c.answers.Add(cost) > answersMax {
		c.Abort(errFlood)
	}
	if !c.Run(func() { defer c.answers.Add(-cost); f() }) {
		c.answers.Add(-cost)
	}
}

// Reject turns a channel away that the server opens, as Answer does.
func (c *Conn) Reject(ch ssh.NewChannel, reason ssh.RejectionReason, why string) {
	c.Answer(len(ch.ExtraData()), func() { ch.Reject(reason, why) })
}

// extraMax is how long the description of a channel may be that the server opens: it names two
// addresses.
const extraMax = 4 << 10
