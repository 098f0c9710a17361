package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArchitecture shows that the table of architecture.md has every package, and no directory that
// is not there. What is below examples and internal/test is in it as a whole.
func TestArchitecture(t *testing.T) {
	name := regexp.MustCompile("`([a-z0-9/]+)/`")
	listed := map[string]bool{}
	for _, row := range table(t, "architecture.md", "| package |")[1:] {
		names := name.FindAllStringSubmatch(row[0], -1)
		require.NotEmpty(t, names, row)
		first := names[0][1]
		listed[first] = true
		// `internal/a/`, `b/` are siblings; what the description names is below the first, or a
		// whole path.
		for below, names := range map[string][][]string{path.Dir(first): names[1:],
			first: name.FindAllStringSubmatch(row[1], -1)} {
			for _, n := range names {
				dir := path.Join(below, n[1])
				if _, err := os.Stat(filepath.Join("..", dir)); err != nil {
					dir = n[1]
				}
				listed[dir] = true
			}
		}
	}
	for dir := range listed {
		require.DirExists(t, filepath.Join("..", dir))
	}
	packages := 0
	require.NoError(t, filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, err := filepath.Rel("..", file)
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		switch {
		case dir == ".":
			return nil
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			dir == "examples" || dir == "internal/test"):
			return filepath.SkipDir
		case !d.IsDir():
			return nil
		}
		programs, err := filepath.Glob(filepath.Join(file, "*.go"))
		if err != nil || len(programs) == 0 {
			return err
		}
		packages++
		require.True(t, listed[dir], "architecture.md does not say what %s is", dir)
		return nil
	}))
	require.Greater(t, packages, 50)
	require.True(t, listed["examples"] && listed["internal/test"])
}
