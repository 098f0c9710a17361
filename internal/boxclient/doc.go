// Package boxclient is a [shellbox.Host] on boxd, the server that sandshell brings to a place of its own. It knows no engine: a [Place] is whatever
// can reach a boxd, and say what has become of it.
//
// A program that was started through a Host is boxd's and outlives the connection: the link (link.go) makes a new connection whenever one is cut, and
// each program goes on where it was (remote.go, with its output, its input and the channel they come on). Package wire has what is said on the way.
package boxclient
