package programs

import "net"

// A Listener is a net.Listener for a process that starts programs: when its Close returns, the
// address is free again. After the Close of another listener the address may stay taken for a
// while, because a program that is being started has all files of its parent open until the kernel
// has executed it.
type Listener struct{ net.Listener }

// Close closes the listener, and makes the kernel stop listening even if other processes have the
// socket. Then the port is free for another listener with SO_REUSEADDR, which package net sets.
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
