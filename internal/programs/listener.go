package programs

import "net"

// A Listener is a net.Listener in a process that starts programs: when its Close returns, the
// address is free again. After the Close of any other it may be taken for some time yet: a program
// that is being started has, until the kernel has executed it, all that its parent had open.
type Listener struct{ net.Listener }

// Close closes the listener, and has the kernel listen no more, also if other processes have its
// socket. Then the port can be listened on again, with SO_REUSEADDR, as package net sets it.
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
