package tools

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBraces shows what braces in a pattern stand for.
func TestBraces(t *testing.T) {
	for pattern, want := range map[string]string{
		"*.go": "*.go", "*.{go,ts}": "*.go *.ts", "{a,b}/{c,d}": "a/c b/c a/d b/d",
		"{a,{b,c}d}": "a bd a cd", "x{,y}": "x xy", "{a}": "{a}", "{a,b": "{a,b", "a,b}": "a,b}",
		"}{": "}{", "{{a,b}": "{a {b",
	} {
		all, ok := expandBraces(pattern)
		require.True(t, ok, pattern)
		require.Equal(t, want, strings.Join(all, " "), pattern)
	}
	for _, n := range []int{8, 1000} {
		_, err := splitGlobs(strings.Repeat("{a,b}", n), "the pattern")
		require.ErrorContains(t, err, "stand for more than 100 patterns")
	}
}

// TestDoubleStars shows which paths fit patterns with **. The last pattern would take longer than
// anybody waits if every way to divide the path were tried.
func TestDoubleStars(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"**", "a/b", true}, {"**", "a", true}, {"a/**", "a", true}, {"a/**", "b", false},
		{"**/b", "b", true}, {"**/b", "a/a/b", true}, {"**/b", "a/b/c", false},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/b/b", true}, {"a/**/b/c", "a/b/b/c", true},
		{"**/b/**/d", "a/b/c/d", true}, {"**/b/**/d", "a/c/d", false}, {"**/**/b", "b", true},
		{"**/a/b/**/b", "a/a/b/c/b", true}, {"a/b", "a/b/c", false}, {"a/b/c", "a/b", false},
		{"*/b", "a/b", true}, {"*/b", "a/a/b", false},
		{strings.Repeat("**/a/", 20) + "b", strings.Repeat("a/", 200) + "a", false},
	} {
		all, err := splitGlobs(c.pattern, c.pattern)
		require.NoError(t, err)
		require.Equal(t, c.want, all.match(c.name), "%s: %s", c.pattern, c.name)
	}
}
