package client

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
)

// TestHostileAttributes decodes answers that no honest boxd gives.
func TestHostileAttributes(t *testing.T) {
	honest := map[string][]byte{"a": {}, "b": []byte("c")}
	got, err := attributes(wire.EncodeAttributes(honest))
	require.NoError(t, err)
	require.Equal(t, honest, got)

	data := wire.EncodeAttributes(honest)
	for end := 1; end < len(data); end++ {
		if got, err := attributes(data[:end]); err == nil { // it ends between two
			require.Len(t, got, 1)
		}
	}
	_, err = attributes(wire.EncodeAttributes(map[string][]byte{"a": nil}))
	require.ErrorContains(t, err, `"a" has no value`)
	_, err = attributes(wire.EncodeAttributes(map[string][]byte{"": {}}))
	require.ErrorContains(t, err, "has no name")
	one, many := ssh.Marshal(&wire.Attribute{Name: "a"}), []byte(nil)
	for len(many) < 2<<20 {
		many = append(many, one...)
	}
	_, err = attributes(many)
	require.ErrorAs(t, err, new(*bounded.TooLargeError))
}

// TestHostileLists decodes answers about several files.
func TestHostileLists(t *testing.T) {
	of := func(index uint32) []byte {
		return ssh.Marshal(&wire.FileAttributes{Index: index,
			Attributes: wire.EncodeAttributes(map[string][]byte{"a": []byte("b")})})
	}
	got, err := attributesOf(&wire.FileAnswer{Size: 2, Data: of(1)}, 3)
	require.NoError(t, err)
	require.Equal(t, []map[string][]byte{nil, {"a": []byte("b")}}, got)
	for _, a := range []wire.FileAnswer{{}, {Size: 4}, {Size: 1 << 63}, {Size: 2, Data: of(2)},
		{Size: 2, Data: of(1 << 31)}, {Size: 2, Data: append(of(1), of(1)...)},
		{Size: 2, Data: of(1)[:5]}} {
		_, err := attributesOf(&a, 3)
		require.Error(t, err, "%+v", a)
	}
}

// TestMostAttributes encodes the shortest attributes that the bound allows.
func TestMostAttributes(t *testing.T) {
	most := map[string][]byte{}
	for size := hostapi.AttributesMax; ; {
		n := len(most)
		name := string([]byte{byte(1 + n%255), byte(1 + n/255)})
		if size -= hostapi.AttributeSize(name, nil); size < 0 {
			break
		}
		most[name] = []byte{}
	}
	data := wire.EncodeAttributes(most)
	require.LessOrEqual(t, len(data), wire.FileDataMax)
	got, err := attributes(data)
	require.NoError(t, err)
	require.Equal(t, most, got)
}

// TestOldBoxd tells a boxd that does not know the question from a file system that keeps no
// attributes.
func TestOldBoxd(t *testing.T) {
	old := explainAttributes("/f", failure(wire.Fail(errors.ErrUnsupported).Encode()))
	require.ErrorIs(t, old, errors.ErrUnsupported)
	require.ErrorContains(t, old, "too old")
	none := explainAttributes("/f", failure(wire.Fail(syscall.ENOTSUP).Encode()))
	require.ErrorIs(t, none, errors.ErrUnsupported)
	require.NotContains(t, none.Error(), "too old")
	require.NoError(t, explainAttributes("/f", nil))
}
