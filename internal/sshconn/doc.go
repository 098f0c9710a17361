// Package sshconn implements an SSH connection whose calls return when this side wants them to,
// whatever the server does. x/crypto's channels block as long as the server or the network does.
//
// The types are [Conn] (handshake, keepalive, end), [Stream] (a channel), [Pump] (one direction of
// a channel), [Listener] and [Forward] (connections that the server announces), and [Group]
// (goroutines). [Conn.Dial] returns a connection that the server makes.
//
// Each goroutine has an owner that waits for it. A connection ends for one reason, which [Conn.Err]
// returns.
package sshconn
