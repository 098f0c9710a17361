package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	t.Parallel()
	words := []string{"path", "line", "lines", "content"}
	for name, want := range map[string]string{
		"paht": "path", "apht": "", "lnie": "line", "htap": "", "pth": "path",
		"Path": "path", "lin": "line", "liness": "lines",
		"contents": "content", "": "", "seconds": "", "x": "", "pathpathpath": "",
		strings.Repeat("path", 1<<20): "",
	} {
		require.Equal(t, want, Of(name, words), "%.20q", name)
	}
	require.Empty(t, Of("path", nil))
}
