package outward

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// ask returns what the names answer to a question.
func ask(t testing.TB, n *names, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	question := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind,
			Class: dnsmessage.ClassINET}}}
	packed, err := question.Pack()
	require.NoError(t, err)
	var m dnsmessage.Message
	require.NoError(t, m.Unpack(n.answer(packed)))
	require.EqualValues(t, 7, m.ID)
	require.True(t, m.Response)
	require.Equal(t, dnsmessage.RCodeSuccess, m.RCode)
	require.Equal(t, question.Questions, m.Questions)
	return m
}

// TestNames checks what is answered, and that it leads back to the name.
func TestNames(t *testing.T) {
	t.Parallel()
	n := newNames()
	address := func(name string) netip.Addr {
		m := ask(t, n, name, dnsmessage.TypeA)
		require.Len(t, m.Answers, 1, name)
		return netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
	}
	a, b := address("a.example.com."), address("b.example.com.")
	require.NotEqual(t, a, b)
	require.Equal(t, a, address("A.Example.COM."))
	require.Equal(t, "a.example.com", n.find(a))
	require.Equal(t, "b.example.com", n.find(b))
	require.Equal(t, "db", n.find(address("db.")))
	require.Empty(t, n.find(nameBlock.address(4000)))
	require.Empty(t, n.find(netip.MustParseAddr("127.0.0.1")))
	require.Equal(t, "127.0.0.1", address("localhost.").String())
	require.Equal(t, "127.0.0.1", address("x.localhost.").String())
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeAAAA, dnsmessage.TypeTXT,
		dnsmessage.TypeMX, dnsmessage.TypePTR, dnsmessage.TypeALL, 65} {
		require.Empty(t, ask(t, n, "a.example.com.", kind).Answers, kind)
	}
	for _, odd := range []string{".", "a b.example.com.", "a\x00b.", "é.example.com."} {
		require.Empty(t, ask(t, n, odd, dnsmessage.TypeA).Answers, odd)
	}
	for i := range 3 * mostKept { // memory is bounded
		n.address(strconv.Itoa(i) + ".example.com")
	}
	require.LessOrEqual(t, len(n.table.byKey), mostKept)
}

// FuzzAnswer checks that no question makes the name server panic.
func FuzzAnswer(f *testing.F) {
	question := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName("a.example.com."), Type: dnsmessage.TypeA,
		Class: dnsmessage.ClassINET}}}
	packed, err := question.Pack()
	require.NoError(f, err)
	f.Add(packed)
	f.Add(packed[:13])
	f.Add([]byte{})
	n := newNames()
	f.Fuzz(func(t *testing.T, question []byte) {
		var m dnsmessage.Message
		if answer := n.answer(question); answer != nil && m.Unpack(answer) != nil {
			t.Errorf("%x: the answer cannot be read: %x", question, answer)
		}
	})
}

// TestNameServer asks by UDP and TCP.
func TestNameServer(t *testing.T) {
	t.Parallel()
	n := newNames()
	// A free port of UDP may be taken of TCP. No connection begins from this one.
	s, err := serveNames(netip.MustParseAddrPort("127.77.0.1:5377"), n)
	require.NoError(t, err)
	t.Cleanup(s.close)
	for _, network := range []string{"udp", "tcp"} {
		r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn,
			error) {
			return new(net.Dialer).DialContext(ctx, network, s.address.String())
		}}
		found, err := r.LookupNetIP(t.Context(), "ip4", network+".example.com")
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, network+".example.com", n.find(found[0].Unmap()))
	}
}
