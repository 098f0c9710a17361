// Package sshconn is one SSH connection. Reads, writes and Close return when this side wants them
// to, whatever the server does or does not do. Every goroutine has an owner that waits for it, and
// there is one reason for the end of the connection.
//
// x/crypto's channels block as long as the server or the network does. Around them are [Conn]
// (handshake, keepalive, end), [Stream] (one channel), [Pump] (one direction of it) and [Conn.Dial]
// (a connection that the server makes).
package sshconn
