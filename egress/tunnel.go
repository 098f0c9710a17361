package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const tlsHandshake = 0x16 // the first byte of TLS

// tunnel serves a connection to one destination. The answer tells the client why it is refused, or
// "" if it may go on. TLS is opened and HTTP is served; the rest is passed on if a rule says so.
//
// What is refused on the ports of HTTP and HTTPS is refused inside, where programs show the reason.
func (x *Exit) tunnel(c *conn, d dest, answer func(why string)) {
	rules := x.rules()
	raw := &wish{scheme: "tcp", host: d.host, port: d.port}
	if rule := rules.find(raw); rule != nil {
		x.pass(c, d, raw, rule, nil, answer)
		return
	}
	if !rules.knows(d.host, d.port) && d.port != 80 && d.port != 443 {
		rule, err := x.askConn(c, raw)
		if rule != nil {
			x.pass(c, d, raw, rule, nil, answer)
			return
		}
		why := rules.whyNot(raw, err)
		x.refuse(c, d, why, func() { answer(why) })
		return
	}
	answer("")
	_ = c.SetReadDeadline(time.Now().Add(firstByte))
	first, err := c.r.Peek(1)
	switch {
	case err != nil:
		_ = c.Close()
	case first[0] == tlsHandshake:
		x.tls(c, d, rules)
	case !looksLikeHTTP(c.r):
		x.refuse(c, d, "what comes is neither TLS nor HTTP: a rule of scheme tcp would allow it",
			silently)
	default:
		x.plain(c, d)
	}
}

// tls serves a connection that begins with TLS.
func (x *Exit) tls(c *conn, d dest, rules *policy) {
	closed := &wish{scheme: "tls", host: d.host, port: d.port}
	if rule := rules.find(closed); rule != nil {
		name, hello := sniff(c)
		if name = normalHost(name); name != "" && name != d.host {
			x.refuse(c, d, "TLS is for "+name, silently)
			return
		}
		x.pass(c, d, closed, rule, hello, func(string) {})
		return
	}
	d.tls = true
	c.dest = d
	var other string
	t := tls.Server(c, &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if name := normalHost(h.ServerName); name != "" && name != d.host {
				other = name
				return nil, errors.New("TLS is for another host")
			}
			return x.ca.certificateOf(d.host)
		},
	})
	ctx, cancel := context.WithTimeout(x.server.BaseContext(nil), firstByte)
	defer cancel()
	_ = c.SetReadDeadline(time.Time{})
	c.in.left = -1
	if err := t.HandshakeContext(ctx); err != nil {
		e := newRecord(d)
		e.Scheme = "https"
		if e.Error = "TLS of the box: " + err.Error(); other != "" {
			e.Denied, e.Error = "TLS is for "+other, ""
		}
		x.log(e)
		_ = c.Close()
		return
	}
	x.hand(t)
}

// A sniffed connection records what is read from it, and cannot be written to.
type sniffed struct {
	net.Conn
	seen bytes.Buffer
}

// Read implements io.Reader.
func (s *sniffed) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.seen.Write(p[:n])
	return n, err
}

// Write implements io.Writer.
func (s *sniffed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// sniff reads the ClientHello of a connection, and returns the name in it and what it has read.
func sniff(c *conn) (name string, hello []byte) {
	s := &sniffed{Conn: c}
	_ = tls.Server(s, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name = h.ServerName
			return nil, io.EOF
		},
	}).Handshake()
	return name, s.seen.Bytes()
}

// pass dials what a rule allows, and passes bytes both ways, first those of begin.
func (x *Exit) pass(c *conn, d dest, w *wish, rule *Rule, begin []byte, answer func(string)) {
	defer c.Close()
	e := newRecord(d)
	e.Scheme, e.Rule = w.scheme, rule.String()
	defer x.log(e)
	err := x.meter.begin()
	if d := x.gate.deck; err == nil && d != nil && d.Mode == Replay {
		err = notTaped("the connection", w)
	}
	if err != nil {
		e.Denied = err.Error()
		x.log(e)
		answer(e.Denied)
		return
	}
	x.conns.carries(c, w)
	ctx := x.server.BaseContext(nil)
	up, err := x.dialer(rule).dial(ctx, "tcp", net.JoinHostPort(d.host, fmt.Sprint(d.port)))
	if err != nil {
		if why := explain(err); errors.Is(err, errNotPublic) {
			e.Denied = why
		} else {
			e.Error = err.Error()
		}
		x.log(e)
		answer(explain(err))
		return
	}
	defer up.Close()
	answer("")
	if !x.rules().keeps(w) { // the rules have changed meanwhile
		e.Denied = "the rules do not allow it any longer"
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	c.in.left = -1
	up2 := make(chan struct{})
	go func() {
		defer close(up2)
		in := io.MultiReader(bytes.NewReader(begin), c)
		_, err := io.Copy(up, x.meter.counted(in, &e.sent))
		endWriting(up, c, err)
	}()
	_, err = io.Copy(c, x.meter.counted(up, &e.received))
	endWriting(c, up, err)
	<-up2
}

// endWriting tells a connection that what came from the other has ended. If it ended by an error,
// both are closed.
func endWriting(to, from net.Conn, err error) {
	if err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = closeWrite(to)
}
