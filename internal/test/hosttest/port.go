package hosttest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FreeAddress returns an address on loopback on which no program listens. It is reserved until the
// test ends.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, release := ReserveAddress(t)
	t.Cleanup(release)
	return address
}

// ReserveAddress is FreeAddress, but the address is reserved until release. Until then Linux gives
// its port to no program that asks for any free port. A program that asks for this port, and sets
// SO_REUSEADDR as servers do, may listen on it.
func ReserveAddress(t testing.TB) (address string, release func()) {
	t.Helper()
	address, release, err := reserve()
	require.NoError(t, err)
	return address, release
}
