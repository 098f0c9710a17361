package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNamedTests shows that every test that SECURITY.md and testing.md name exists, and in the
// package that SECURITY.md names before it. Groups and cases of the conformance suite count too.
func TestNamedTests(t *testing.T) {
	tests := map[string][]string{} // directories, by the name of a function
	literals := map[string]bool{}  // of Go strings in tests, among which are the names of subtests
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		suite := filepath.Base(filepath.Dir(path)) == "sandboxtest"
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") && !(suite && filepath.Ext(path) ==
			".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = append(tests[f.Name.Name], filepath.Dir(path))
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				literals[strings.Trim(l.Value, "`\"")] = true
			}
			return true
		})
		return nil
	}))

	named := regexp.MustCompile(`\b((?:Test|Fuzz)\w*…|(?:Test|Fuzz|Benchmark)[A-Z]\w*)((?:/\w+)*)`)
	// in returns the directories of a test, or of all tests that begin so if the name ends in "…".
	in := func(name string) (dirs []string) {
		begin, many := strings.CutSuffix(name, "…")
		for test, its := range tests {
			if test == name || many && strings.HasPrefix(test, begin) {
				dirs = append(dirs, its...)
			}
		}
		return dirs
	}
	found := 0
	for _, document := range []string{"../SECURITY.md", "testing.md"} {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.NotEmpty(t, in(m[1]), "%s names %s, and there is no such test", document, m[1])
			for _, sub := range strings.Split(m[2], "/")[1:] {
				assert.True(t, literals[sub], "%s names %s, and no test has a subtest %q",
					document, m[0], sub)
			}
		}
	}
	require.Greater(t, found, 80)

	// In a cell, `package`: TestA, TestB/Sub; `other`: …
	text, err := os.ReadFile("../SECURITY.md")
	require.NoError(t, err)
	of := regexp.MustCompile("`([a-z/]+)`: ([^`;|]+)")
	group := regexp.MustCompile(`[/ ]((?:[0-9]+_)?[A-Z]\w+)`)
	for _, m := range of.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sandboxtest" {
			for _, g := range group.FindAllStringSubmatch(" "+m[2], -1) {
				assert.True(t, literals[g[1]], "%s: there is no group or case %s", m[0], g[1])
			}
			continue
		}
		for _, test := range named.FindAllStringSubmatch(m[2], -1) {
			assert.True(t, slices.ContainsFunc(in(test[1]), func(dir string) bool {
				return strings.HasSuffix(dir, "/"+m[1])
			}), "%s is in %q, not in %s", test[1], in(test[1]), m[1])
		}
	}
}
