//go:build linux

package outward

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServerAddress is where programs of the box ask for names.
var nameServerAddress = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53)

const (
	// lifetime is how long programs may keep an answer, in seconds. An address stays a name's for
	// as long as it is used.
	lifetime = 60
	// longestQuestion is more than a question with EDNS takes.
	longestQuestion = 4 << 10
	// mostAsking bounds the connections to the name server, and askingLimit their time.
	mostAsking  = 64
	askingLimit = 10 * time.Second
)

// A nameServer answers by UDP and TCP.
type nameServer struct {
	address netip.AddrPort
	names   *names
	udp     net.PacketConn
	tcp     net.Listener
	working sync.WaitGroup
	asking  chan struct{} // as full as there are connections
}

// serveNames starts a name server.
func serveNames(address netip.AddrPort, names *names) (*nameServer, error) {
	udp, err := net.ListenPacket("udp4", address.String())
	if err != nil {
		return nil, explainPort(err, address.Port())
	}
	address = udp.LocalAddr().(*net.UDPAddr).AddrPort()
	tcp, err := net.Listen("tcp4", address.String())
	if err != nil {
		_ = udp.Close()
		return nil, explainPort(err, address.Port())
	}
	s := &nameServer{address: address, names: names, udp: udp, tcp: tcp,
		asking: make(chan struct{}, mostAsking)}
	s.working.Go(s.serveUDP)
	s.working.Go(s.serveTCP)
	return s, nil
}

func (s *nameServer) close() {
	_ = s.udp.Close()
	_ = s.tcp.Close()
	s.working.Wait()
}

func (s *nameServer) serveUDP() {
	question := make([]byte, longestQuestion)
	for {
		n, from, err := s.udp.ReadFrom(question)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // about an answer to a program that has gone
		}
		if answer := s.names.answer(question[:n]); answer != nil {
			_, _ = s.udp.WriteTo(answer, from)
		}
	}
}

func (s *nameServer) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		select {
		case s.asking <- struct{}{}:
		default:
			Reset(c)
			continue
		}
		s.working.Go(func() {
			defer func() { <-s.asking }()
			s.serveConn(c)
		})
	}
}

// serveConn answers the questions of a connection, each after its length: RFC 1035, section 4.2.2.
func (s *nameServer) serveConn(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askingLimit))
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(length[:])
		if n > longestQuestion {
			return
		}
		question := make([]byte, n)
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		answer := s.names.answer(question)
		if answer == nil {
			return
		}
		answer = append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// answer answers a question. It returns nil for what is none.
//
// Each name has an IPv4 address, and nothing else. Other questions are answered with nothing, and
// not with NXDOMAIN: musl would take that for all kinds.
func (n *names) answer(question []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(question)
	if err != nil || head.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode,
		RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	if head.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
	}
	b := dnsmessage.NewBuilder(nil, reply)
	b.EnableCompression()
	if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
		return nil
	}
	name, ok := hostName(q.Name.String())
	if ok && head.OpCode == 0 && q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
		ip := nameServerAddress.Addr()
		if name != "localhost" && !strings.HasSuffix(name, ".localhost") { // RFC 6761
			ip = n.address(name)
		}
		if b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: lifetime},
			dnsmessage.AResource{A: ip.As4()}) != nil {
			return nil
		}
	}
	answer, err := b.Finish()
	if err != nil {
		return nil
	}
	return answer
}

// hostName returns a name as hosts have it: in lower case, without the last dot. ok is false if
// hosts have no such names.
func hostName(name string) (_ string, ok bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	return name, name != "" && strings.Trim(name, allowed) == ""
}
