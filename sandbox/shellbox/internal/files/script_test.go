package files

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzToolOutput(f *testing.F) {
	for _, seed := range []string{
		"sandshell: /a/b: No such file or directory\n", "sandshell: Permission denied\n",
		"sandshell: [Invalid argument]\n", "sandshell: : Invalid argument",
		"sh: tar: not found\n", "tar: ./d/f: Cannot open: Permission denied\ntar: Exiting with " +
			"failure status due to previous errors\n",
		"tar: can't open './d/f': Permission denied\n",
		"tar: ./: file changed as we read it\ntar: ./d: socket ignored\n",
		"tar: .: File removed before we read it\n",
	} {
		f.Add(seed, "d")
		f.Add(strings.Repeat(seed, 200), ".")
	}
	f.Fuzz(func(t *testing.T, text, root string) {
		var path *fs.PathError
		if err := scriptError(1, text, "/box"); !strings.Contains(text, "not found") {
			require.ErrorAs(t, err, &path)
		}
		said := &toolOutput{}
		n, err := said.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		list, ok := said.skipped("/box", root)
		if ok {
			require.LessOrEqual(t, list.Count, strings.Count(text, "\n")+1)
			require.LessOrEqual(t, len(list.Skipped), 100)
		}
	})
}
