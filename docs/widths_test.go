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

// TestWidths shows that no line of Go, of a shell script, of Python or of a document is wider than
// maxWidth. In Go, lines with a part of a raw string are exempt, because a newline would change the
// string. In documents, tables and quoted lines are exempt. The harness's tasks have programs of
// others.
func TestWidths(t *testing.T) {
	files := map[string]int{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := path != ".." && strings.HasPrefix(d.Name(), ".")
			if hidden || path == "../harness/testdata/programs" {
				return filepath.SkipDir
			}
			return nil
		}
		kind := filepath.Ext(path)
		if !slices.Contains([]string{".go", ".sh", ".py", ".md"}, kind) {
			return nil
		}
		files[kind]++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var wide []int
		switch kind {
		case ".go":
			wide = wideLines(text)
		case ".md":
			wide = tooWide(text, func(_ int, line string) bool {
				return strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ")
			})
		default:
			wide = tooWide(text, func(int, string) bool { return false })
		}
		for _, line := range wide {
			t.Errorf("%s:%d has more than %d columns", path, line, maxWidth)
		}
		return nil
	}))
	for kind, least := range map[string]int{".go": 800, ".sh": 15, ".py": 10, ".md": 10} {
		require.Greater(t, files[kind], least, kind)
	}
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
	return tooWide(text, func(number int, _ string) bool { return raw[number] })
}

// tooWide returns the numbers of the lines of a text that are too wide and not exempt.
func tooWide(text []byte, exempt func(number int, line string) bool) []int {
	var wide []int
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		if columns > maxWidth && !exempt(number, line) {
			wide = append(wide, number)
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
