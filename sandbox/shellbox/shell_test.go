package shellbox

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each dialect's quoting is undone by a shell of that dialect, whatever the bytes; no line is longer than a terminal takes, and
// none has a byte that a terminal acts on.
func TestQuote(t *testing.T) {
	var all strings.Builder
	for c := 1; c < 256; c++ {
		all.WriteByte(byte(c))
	}
	texts := []string{"", "a", "it's", `a\b`, "a\nb\n", "$x `y` \"z\"", strings.Repeat("long ' \\ \x03\n", 5000), all.String(), "ünïcödé ☃"}
	for _, c := range []struct {
		dialect dialect
		argv    []string
	}{{bash, []string{"bash", "-c"}}, {posix, []string{"dash", "-c"}}, {ash, []string{"busybox", "ash", "-c"}}} {
		t.Run(strings.Join(c.argv, " "), func(t *testing.T) {
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skip("this machine has no " + c.argv[0])
			}
			sh := shell{dialect: c.dialect, nonce: nonce}
			for _, text := range texts {
				var script strings.Builder
				script.WriteString("x=\n")
				for _, piece := range sh.pieces(text) {
					require.LessOrEqual(t, len(piece), sh.lineMax())
					for _, b := range []byte(piece) {
						require.False(t, b < ' ' && b != '\n' && b != '\t' || b == 0x7f, "byte %#x", b)
					}
					script.WriteString("x=$x" + piece + "\n")
				}
				script.WriteString(`printf %s "$x"`)
				cmd := exec.Command(c.argv[0], c.argv[1:len(c.argv)-1]...)
				cmd.Stdin = strings.NewReader(script.String())
				out, err := cmd.Output()
				require.NoError(t, err)
				require.Equal(t, text, string(out))
			}
		})
	}
}

func TestBlank(t *testing.T) {
	for _, s := range []string{"", " \t\n", "# only", "\n  # a\n\n#b"} {
		require.True(t, blank(s), "%q", s)
	}
	for _, s := range []string{":", "# a\nx", "x # a"} {
		require.False(t, blank(s), "%q", s)
	}
}
