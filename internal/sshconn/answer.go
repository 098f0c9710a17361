package sshconn

import (
	"errors"

	"golang.org/x/crypto/ssh"
)

// answersMax bounds the memory for answers that the server does not read: some thousand usual ones.
// answerCost is what an answer takes besides the message that it answers: a goroutine, and a
// channel of x/crypto's.
const (
	answersMax = 8 << 20
	answerCost = 8 << 10
)

var errFlood = errors.New("the server makes requests without end, and reads no answers")

// Answer runs f, which answers a message of that size, and does not wait for it. If the server
// leaves too many answers unread, Answer ends the connection.
func (c *Conn) Answer(size int, f func()) {
	cost := int64(size) + answerCost
	if c.answers.Add(cost) > answersMax {
		c.Abort(errFlood)
	}
	if !c.Run(func() { defer c.answers.Add(-cost); f() }) {
		c.answers.Add(-cost)
	}
}

// Reject rejects a channel that the server opens, in the way of Answer.
func (c *Conn) Reject(ch ssh.NewChannel, reason ssh.RejectionReason, why string) {
	c.Answer(len(ch.ExtraData()), func() { ch.Reject(reason, why) })
}

// extraMax is the greatest length of the extra data of a channel that the server opens: two
// addresses.
const extraMax = 4 << 10
