package egress

import (
	"bufio"
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// serve serves the connections of a listener until its Accept fails, and returns that error. Each
// speaks HTTP to a proxy, CONNECT, or SOCKS5.
func (x *Exit) serve(l net.Listener) error { return x.serveEach(l, x.greet) }

// serveEach calls greet for each connection of a listener, until its Accept fails.
func (x *Exit) serveEach(l net.Listener, greet func(*conn)) error {
	for {
		raw, err := l.Accept()
		if err != nil {
			return err
		}
		c := x.conns.add(raw)
		if c == nil {
			return net.ErrClosed
		}
		if !x.begin() {
			_ = c.Close()
			return net.ErrClosed
		}
		go func() {
			defer x.active.Done()
			greet(c)
		}()
	}
}

// greet finds out what a connection is for.
func (x *Exit) greet(c *conn) {
	_ = c.SetReadDeadline(time.Now().Add(firstByte))
	first, err := c.r.Peek(1)
	switch {
	case err != nil:
		_ = c.Close()
	case first[0] == socksVersion:
		x.socks(c)
	case first[0] == 'C' && startsWith(c.r, "CONNECT "):
		x.connect(c)
	case !looksLikeHTTP(c.r):
		x.refuse(c, dest{via: "http"}, "this is neither HTTP to a proxy nor SOCKS5", silently)
	default:
		x.plain(c, dest{via: "http"})
	}
}

// startsWith reports whether a stream starts with a text that begins with the stream's first byte.
func startsWith(r *bufio.Reader, text string) bool {
	begin, _ := r.Peek(len(text))
	return string(begin) == text
}

// looksLikeHTTP reports whether a stream may begin with a method. It does not wait for more than
// the first byte, which has come.
func looksLikeHTTP(r *bufio.Reader) bool {
	begin, _ := r.Peek(min(r.Buffered(), 20))
	method, _, _ := bytes.Cut(begin, []byte(" "))
	return bytes.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == nil || len(method) == 0
}

// plain gives a connection without TLS to the server.
func (x *Exit) plain(c *conn, d dest) {
	c.dest, c.in.left = d, -1
	_ = c.SetReadDeadline(time.Time{})
	x.hand(c)
}

// refuse answers, and closes the connection.
func (x *Exit) refuse(c *conn, d dest, why string, answer func()) {
	e := newRecord(d)
	e.Denied = why
	x.log(e)
	answer()
	_ = c.Close()
}

// silently is for protocols that have no answer that says why.
func silently() {}

// connect serves CONNECT.
func (x *Exit) connect(c *conn) {
	d := dest{via: "connect"}
	refuse := func(status int, why string) {
		x.refuse(c, d, why, func() { answerConnect(c, status, why) })
	}
	r, err := http.ReadRequest(c.r)
	if err != nil {
		refuse(http.StatusBadRequest, "this CONNECT cannot be read")
		return
	}
	c.in.left = -1
	if d.host, d.port, err = splitHostPort(r.RequestURI, 0); err != nil {
		refuse(http.StatusBadRequest, err.Error())
		return
	}
	if !x.authorized(r.Header) {
		refuse(http.StatusProxyAuthRequired, needsToken)
		return
	}
	x.tunnel(c, d, func(why string) {
		if why == "" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			return
		}
		answerConnect(c, http.StatusForbidden, why)
	})
}

// answerConnect refuses a CONNECT. Some programs show the reason phrase, and others the body.
func answerConnect(c net.Conn, status int, why string) {
	phrase := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, textPrefix+why)
	more := ""
	if status == http.StatusProxyAuthRequired {
		more = "Proxy-Authenticate: " + challenge + "\r\n"
	}
	text := textPrefix + why + "\n"
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", status, phrase, more, len(text), text)
}

const (
	tokenUser  = "sandshell"
	challenge  = `Basic realm="sandshell egress"`
	needsToken = "this proxy is for the programs of one sandbox: use HTTP_PROXY as it is set there"
)

// authorized reports whether a client of the proxy has shown the token.
func (x *Exit) authorized(h http.Header) bool {
	if x.token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(h.Get("Proxy-Authorization"), " ")
	login, err := base64.StdEncoding.DecodeString(given)
	return err == nil && strings.EqualFold(scheme, "Basic") && x.isToken(string(login))
}

// isToken reports whether a client's "user:password" is right.
func (x *Exit) isToken(login string) bool {
	return subtle.ConstantTimeCompare([]byte(login), []byte(tokenUser+":"+x.token)) == 1
}
