package sshconn

import (
	"errors"

	"golang.org/x/crypto/ssh"
)

// answersMax bounds the memory for answers that the server has not read. About a thousand answers
// of usual size fit. answerCost is the memory that an answer takes besides the message that it
// answers: for a goroutine and for x/crypto's channel.
const (
	answersMax = 8 << 20
	answerCost = 8 << 10
)

var errFlood = errors.New("the server makes too many requests without reading the answers")

// Answer runs f in a goroutine. f answers a message of size bytes. If the server leaves too many
// answers unread, Answer ends the connection.
func (c *Conn) Answer(size int, f func()) {
	cost := int64(size) + answerCost
	if c.answers.Add(cost) > answersMax {
		c.Abort(errFlood)
	}
	if !c.Run(func() { defer c.answers.Add(-cost); f() }) {
		c.answers.Add(-cost)
	}
}

// Reject rejects a channel that the server opens. Like Answer, it does not wait for the network.
func (c *Conn) Reject(ch ssh.NewChannel, reason ssh.RejectionReason, why string) {
	c.Answer(len(ch.ExtraData()), func() { ch.Reject(reason, why) })
}

// extraMax bounds the extra data of a channel that the server opens. It holds two addresses.
const extraMax = 4 << 10
