package harness

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFindPattern checks patterns against what find -path matches.
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

// TestLineSum checks that a sum depends on the lines and their number, and not on their order.
func TestLineSum(t *testing.T) {
	t.Parallel()
	key := newKey()
	sum := func(chunks ...string) string {
		s := &lineSum{line: hmac.New(sha256.New, key)}
		for _, c := range chunks {
			s.add([]byte(c))
		}
		return s.String()
	}
	want := sum("a\nbc\n")
	require.Equal(t, want, sum("bc\na\n"))
	require.Equal(t, want, sum("a\nb", "c"))
	for _, other := range []string{"a\nb\nc\n", "abc\n", "a\nbc\n\n", "a\na\nbc\n", "a\nbd\n", ""} {
		require.NotEqual(t, want, sum(other), "%q", other)
	}
}
