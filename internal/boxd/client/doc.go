// Package client is a [shellbox.Host] on boxd, the server that sandshell brings to a place of its
// own. It knows no engine: a [Place] reaches a boxd and says what has become of it.
//
// A program that was started through a Host belongs to boxd and outlives the connection. The link
// (link.go) makes a new connection whenever one is cut, and each program goes on where it was
// (remote.go; output.go, input.go and channel.go are parts of it). Package wire is the protocol.
package client
