package sshconn

import (
	"net"

	"golang.org/x/crypto/ssh"
)

// Plain is like Handshake, but without a handshake: connect makes a connection on the net.Conn that
// it gets, which is raw through a meter.
func Plain(raw net.Conn, connect func(net.Conn) (ssh.Conn, <-chan ssh.NewChannel,
	<-chan *ssh.Request, error), announce func(*Conn, ssh.NewChannel)) (*Conn, error) {
	line := &meter{Conn: raw}
	c, channels, requests, err := connect(line)
	if err != nil {
		raw.Close()
		return nil, err
	}
	return newConn(c, line, channels, requests, announce), nil
}

func newConn(c ssh.Conn, line *meter, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request,
	announce func(*Conn, ssh.NewChannel)) *Conn {
	line.setConn(c)
	gone := make(chan struct{})
	conn := &Conn{Group: NewGroup(), Client: client{c, gone}, line: line, announce: announce,
		keeps: make(chan keeper, 1), gone: gone}
	conn.Run(func() { conn.serve(channels, requests) })
	return conn
}
