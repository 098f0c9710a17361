package bounded_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readsWithoutBound are the functions that read as much as there is.
var readsWithoutBound = []string{"ReadAll", "ReadString", "ReadBytes", "NewDecoder", "NewScanner"}

// unboundedReads returns the lines of a file that read without a bound. A comment "//bounded: why"
// on the line says that the stream is not a box's, or where its bound is.
func unboundedReads(name string, source any) (found []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	allowed := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if why, ok := strings.CutPrefix(c.Text, "//bounded: "); ok && why != "" {
				allowed[files.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(readsWithoutBound, f.Sel.Name) {
			return true
		}
		of, isName := f.X.(*ast.Ident)
		line := files.Position(f.Sel.Pos())
		switch {
		case isName && of.Name == "bounded", allowed[line.Line], len(call.Args) > 0 && hasBound(call.Args[0]):
		case f.Sel.Name == "NewDecoder" && !(isName && of.Name == "json"):
		default:
			found = append(found, line.String()+": "+f.Sel.Name)
		}
		return true
	})
	return found, nil
}

// hasBound reports whether a reader is io.LimitReader(…), or bytes.NewReader(…) of memory.
func hasBound(reader ast.Expr) bool {
	call, ok := reader.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "LimitReader" || f.Sel.Name == "NewReader")
}

// Nothing but package bounded reads a stream of a box into memory.
func TestReads(t *testing.T) {
	root := filepath.Join("..", "..")
	var found []string
	for _, dir := range []string{"internal", "sandbox", "plugin", "harness", "tools", "sshbox", "kubebox", "localbox"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && slices.Contains([]string{"testdata", "sandboxtest", "kubetest", "hosttest", "tools", "boxd"}, d.Name()) && path != filepath.Join(root, "tools") {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			reads, err := unboundedReads(path, nil)
			found = append(found, reads...)
			return err
		}))
	}
	require.Empty(t, found, "use package bounded, or say why not by a comment //bounded: on the line")
}

func TestReadsFinds(t *testing.T) {
	found, err := unboundedReads("f.go", `package f
func f() {
	io.ReadAll(r)
	in.ReadString(10)
	io.ReadAll(r) //bounded: by what the caller gives
	io.ReadAll(r) //bounded: 
	json.NewDecoder(r)
	json.NewDecoder(bytes.NewReader(b))
	io.ReadAll(io.LimitReader(r, 5))
	base64.NewDecoder(e, r)
	bounded.ReadAll(r, "it", 5)
}`)
	require.NoError(t, err)
	require.Equal(t, []string{"f.go:3:5: ReadAll", "f.go:4:5: ReadString", "f.go:6:5: ReadAll", "f.go:7:7: NewDecoder"}, found)
}
