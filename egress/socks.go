package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Of RFC 1928 (SOCKS5) and RFC 1929 (its login).
const (
	socksVersion      = 5
	socksLoginVersion = 1

	socksNoLogin  = 0
	socksLogin    = 2
	socksNoMethod = 0xff

	socksConnect = 1

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4

	socksOK         = 0
	socksNotAllowed = 2
	socksNoCommand  = 7
)

// socks serves SOCKS5, of which it has CONNECT.
func (x *Exit) socks(c *conn) {
	d := dest{via: "socks"}
	reply := func(code byte) { _, _ = c.Write([]byte{5, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}) }
	err := x.socksHello(c)
	if err == nil {
		d.host, d.port, err = socksDest(c.r, reply)
	}
	if err != nil {
		x.refuse(c, d, err.Error(), silently) // where there is an answer, it was given
		return
	}
	c.in.left = -1
	x.tunnel(c, d, func(why string) {
		if why == "" {
			reply(socksOK)
			return
		}
		reply(socksNotAllowed)
	})
}

// socksHello agrees on a login, and checks it.
func (x *Exit) socksHello(c *conn) error {
	if _, err := c.r.ReadByte(); err != nil {
		return err
	}
	methods, err := socksString(c.r)
	if err != nil {
		return err
	}
	method := byte(socksNoLogin)
	if x.token != "" {
		method = socksLogin
	}
	offered := false
	for _, m := range []byte(methods) {
		offered = offered || m == method
	}
	if !offered {
		_, _ = c.Write([]byte{socksVersion, socksNoMethod})
		return errors.New(needsToken)
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil || method == socksNoLogin {
		return err
	}
	if _, err := c.r.ReadByte(); err != nil {
		return err
	}
	user, err := socksString(c.r)
	if err != nil {
		return err
	}
	password, err := socksString(c.r)
	if err != nil {
		return err
	}
	if !x.isToken(user + ":" + password) {
		_, _ = c.Write([]byte{socksLoginVersion, 1})
		return errors.New(needsToken)
	}
	_, err = c.Write([]byte{socksLoginVersion, 0})
	return err
}

// socksString reads a string after its length in a byte.
func socksString(r io.Reader) (string, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", err
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// socksDest reads the request.
func socksDest(r io.Reader, reply func(byte)) (host string, port int, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", 0, err
	}
	switch head[3] {
	case socksIPv4, socksIPv6:
		b := make([]byte, map[byte]int{socksIPv4: 4, socksIPv6: 16}[head[3]])
		if _, err = io.ReadFull(r, b); err == nil {
			ip, _ := netip.AddrFromSlice(b)
			host = ip.Unmap().String()
		}
	case socksName:
		host, err = socksString(r)
		host = normalHost(host)
	default:
		err = fmt.Errorf("SOCKS5 has no address of type %d", head[3])
	}
	if err != nil {
		return "", 0, err
	}
	var p [2]byte
	if _, err := io.ReadFull(r, p[:]); err != nil {
		return "", 0, err
	}
	if head[1] != socksConnect {
		reply(socksNoCommand)
		return host, 0, fmt.Errorf("of SOCKS5 there is only CONNECT, not command %d", head[1])
	}
	port = int(binary.BigEndian.Uint16(p[:]))
	problem := nameProblem(host)
	if port == 0 {
		problem = "there is no port 0"
	}
	if problem != "" {
		reply(socksNotAllowed)
		return "", 0, fmt.Errorf("%q is not a host: %s", host, problem)
	}
	return host, port, nil
}
