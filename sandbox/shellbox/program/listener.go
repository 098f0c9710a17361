package program

import "net"

// A Listener is a net.Listener in a process that starts programs: when its Close returns, the address is free again. After the Close of any other it may be taken
// for some time yet: a program that is being started has, until the kernel has executed it, all that its parent had open.
type Listener struct{ net.Listener }

// Close closes the listener, and has the kernel listen no more, whoever else has its socket. The port can then be listened on by who sets SO_REUSEADDR, as package net does.
func (l Listener) Close() error {
	tcp, ok := l.Listener.(*net.TCPListener)
	if !ok { // a Unix socket's path goes at once
		return l.Listener.Close()
	}
	socket, serr := tcp.File()
	err := l.Listener.Close() // first: Accept is to return net.ErrClosed
	if serr == nil {
		shutdown(socket)
		socket.Close()
	}
	return err
}
