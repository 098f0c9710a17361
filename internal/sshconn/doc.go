// Package sshconn is one SSH connection as its users need it: whatever the server does or does not do, reads, writes and closing
// return when this side wants them to, every goroutine has an owner that waits for it, and the end of the connection has one reason.
//
// x/crypto's channels block with the server and with the network. Around them are [Conn] (handshake, keepalive, end), [Stream] (one channel),
// [Pump] (one direction of it) and [Conn.Dial] (a connection that the server makes).
package sshconn
