package shellquote

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shell reads each quoted word as the original.
func TestShells(t *testing.T) {
	words := []string{
		"", "plain", "a b", "it's", "''", `back\slash`, `\'`, "$HOME", "`x`", "$(x)", "*", "~",
		"#no", "!", "-n", "{a,b}", "(", "a;b", "a\nb", "\n", "\t", "ü €", "\xff\xfe", "a=b",
		"a/b.c:1",
	}
	for _, shell := range [][]string{{"sh"}, {"bash"}, {"dash"}, {"busybox", "ash"}, {"zsh"},
		{"mksh"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skipf("no %s here: make prepare installs it, on Debian", shell[0])
			}
			for _, quote := range []func(string) string{Quote, Readable} {
				script := `printf '%s\0'`
				for _, w := range words {
					script += " " + quote(w)
				}
				out, err := exec.Command(shell[0], append(shell[1:], "-c", script)...).Output()
				require.NoError(t, err)
				require.Equal(t, strings.Join(words, "\x00")+"\x00", string(out))
			}
		})
	}
}

func TestReadable(t *testing.T) {
	for s, want := range map[string]string{"main.go": "main.go", "a/b:1": "a/b:1", "a b": "'a b'",
		"-n": "'-n'", "": "''", "a=b": "'a=b'", "it's": `'it'\''s'`} {
		require.Equal(t, want, Readable(s))
	}
}
