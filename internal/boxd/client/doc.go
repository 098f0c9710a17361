// Package client is a [shellbox.Host] on boxd, the SSH server that sandshell brings to containers,
// pods and machines. It knows no engine: a [Place] connects to a boxd, and says what has become of
// it.
//
// [Connect] makes the [Host]. A program that was started through a Host belongs to boxd and
// outlives the connection. If the connection is cut, the Host makes a new one (link.go), and each
// program goes on where it was (remote.go, with its parts output.go, input.go and channel.go).
// Package wire is the protocol.
//
// All methods of a Host may be called from several goroutines.
package client
