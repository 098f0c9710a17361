package docs

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// maxWidth is how many columns a line may have. A tab counts 4.
const maxWidth = 100

// Lines of Go are short enough to be read beside another window. Raw strings are exempt, with the
// rest of their lines: a newline in a script, an expression or an expected output changes it.
func TestWidths(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range wideLines(text) {
			t.Errorf("%s:%d has more than %d columns", path, line, maxWidth)
		}
		return nil
	}))
	require.Greater(t, files, 800)
}

// wideLines returns the numbers of the lines of a Go file that are too wide.
func wideLines(text []byte) []int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	raw := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.STRING && literal[0] == '`' {
			first := file.Line(pos)
			for line := range strings.Count(literal, "\n") + 1 {
				raw[first+line] = true
			}
		}
	}
	var wide []int
	for i, line := range slices.Collect(strings.Lines(string(text))) {
		line = strings.TrimSuffix(line, "\n")
		columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		if columns > maxWidth && !raw[i+1] {
			wide = append(wide, i+1)
		}
	}
	return wide
}

func TestWideLines(t *testing.T) {
	long := strings.Repeat("é", 90)
	require.Equal(t, []int{4, 5}, wideLines([]byte(
		"package p\n// "+long+"\n//\n// "+long+"\t\t\t\n"+
			"var a = \""+long+long+"\"\nvar b = `"+long+long+"\n"+long+long+"`\n")))
}
