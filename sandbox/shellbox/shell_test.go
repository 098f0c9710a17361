package shellbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
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

// Each shell takes all of initLines: none prints an error, and each line has its effect.
func TestInitLines(t *testing.T) {
	for _, c := range []struct {
		dialect dialect
		argv    []string
		effect  string // of the lines that are for this shell only
		shows   string
	}{
		{bash, []string{"bash", "--norc", "--noediting", "-i"}, `printf '%s|' "${PROMPT_COMMAND[@]}"`, `:|PS1=$_ss_p|`},
		{posix, []string{"dash", "-i"}, `set -o | grep ignoreeof | tr -d ' \t'`, "ignoreeofoff"},
		{ash, []string{"busybox", "ash", "-i"}, `set -o | grep ignoreeof | tr -d ' \t'`, "ignoreeofon"},
	} {
		t.Run(c.argv[0], func(t *testing.T) {
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skip("this machine has no " + c.argv[0])
			}
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			cmd.Env = append(os.Environ(), "PROMPT_COMMAND=:", "PS1=", "ENV=")
			ptm, err := pty.Start(cmd)
			require.NoError(t, err)
			defer ptm.Close()
			defer cmd.Wait()
			// The second time is when the prompt was lost.
			lines := fmt.Sprintf("stty -echo\n%s%s%s; printf 'end%%s\\n' .\nexit\n", shell{nonce: nonce}.initLines(7), shell{nonce: nonce}.initLines(8), c.effect)
			_, err = ptm.WriteString(lines)
			require.NoError(t, err)
			out, _ := io.ReadAll(ptm) // EIO at the end
			require.NotContains(t, strings.ToLower(string(out)), "error")
			require.NotContains(t, string(out), "not found")
			require.Contains(t, string(out), c.shows)
			require.Contains(t, string(out), "end.")
			hello := fmt.Sprintf("\x1b]133;D;%d;%d;", c.dialect, helloSeq)
			require.Equal(t, 2, strings.Count(string(out), hello), "%q", out)
		})
	}
}
