package outward

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable checks that keys keep their numbers while they are used, and that a number of a key
// that was forgotten is no other's.
func TestTable(t *testing.T) {
	t.Parallel()
	table := newTable[string, int](3, 8)
	require.EqualValues(t, 1, table.number("a", 10))
	require.EqualValues(t, 2, table.number("b", 20))
	require.EqualValues(t, 3, table.number("c", 30))
	require.EqualValues(t, 1, table.number("a", 11))
	require.EqualValues(t, 4, table.number("d", 40)) // b was the longest unused
	_, _, ok := table.find(2)
	require.False(t, ok)
	key, value, ok := table.find(1)
	require.True(t, ok)
	require.Equal(t, "a", key)
	require.Equal(t, 11, value)
	require.EqualValues(t, 5, table.number("b", 21)) // c goes
	seen := map[uint32]bool{}
	for i := range 100 {
		n := table.number("many"+strconv.Itoa(i), i)
		require.NotZero(t, n)
		require.Less(t, n, uint32(8))
		seen[n] = true
		require.LessOrEqual(t, len(table.byKey), 3)
		require.Equal(t, len(table.byKey), len(table.byNum))
		require.Equal(t, len(table.byKey), table.order.Len())
	}
	require.Len(t, seen, 7)
	_, _, ok = table.find(0)
	require.False(t, ok)
}

// TestBlocks checks the first and the last addresses. A table gives no number of the last.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		block  block
		number uint32
		ip     string
	}{
		{nameBlock, 1, "127.64.0.1"},
		{nameBlock, 1<<22 - 1, "127.127.255.255"},
		{wayBlock, 1, "127.128.0.1"},
		{wayBlock, 1<<23 - 1, "127.255.255.255"},
	} {
		ip := netip.MustParseAddr(c.ip)
		require.Equal(t, ip, c.block.address(c.number))
		n, ok := c.block.number(ip)
		require.True(t, ok)
		require.Equal(t, c.number, n)
	}
	require.EqualValues(t, 1<<22-1, nameBlock.numbers)
	require.EqualValues(t, 1<<23-1, wayBlock.numbers)
	for _, other := range []string{
		"127.0.0.1", "127.128.0.1", "10.64.0.1", "::1", "::ffff:127.64.0.1",
	} {
		_, ok := nameBlock.number(netip.MustParseAddr(other))
		require.False(t, ok, other)
	}
}
