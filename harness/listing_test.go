package harness

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
)

// Patterns are find's: * matches a slash, too.
func TestFindPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		matches       bool
	}{
		{"/lib*", "/lib64/ld.so", true}, {"/lib*", "/usr/lib", false}, {"*.pyc", "a/b.pyc", true},
		{"a?b", "a/b", true},
		{"[ab]", "b", true}, {"[!ab]", "b", false}, {"[^ab]", "c", true}, {"[a-c]", "b", true},
		{"[c-a]", "b", false},
		{`\*`, "*", true}, {`\*`, "x", false}, {"a.c", "abc", false}, {"[", "[", true},
		{"é?", "éx", true}, {"(", "(", true},
		{"*", "a\nb", true},
	} {
		require.Equal(t, c.matches, findPattern(c.pattern).MatchString(c.path), "%q %q", c.pattern,
			c.path)
	}
}

// Sums tell lines, their number, and nothing of their order.
func TestLineSum(t *testing.T) {
	t.Parallel()
	key := newKey()
	of := func(pieces ...string) string {
		s := &lineSum{of: hmac.New(sha256.New, key)}
		for _, p := range pieces {
			s.add([]byte(p))
		}
		return s.String()
	}
	want := of("a\nbc\n")
	require.Equal(t, want, of("bc\na\n"))
	require.Equal(t, want, of("a\nb", "c"))
	for _, other := range []string{"a\nb\nc\n", "abc\n", "a\nbc\n\n", "a\na\nbc\n", "a\nbd\n", ""} {
		require.NotEqual(t, want, of(other), "%q", other)
	}
}
