package bounded_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readsAll are functions and methods that read without a bound.
var readsAll = []string{"ReadAll", "ReadString", "ReadBytes", "ReadFrom", "NewScanner", "Scan",
	"Fscan", "Fscanf", "Fscanln"}

// decoders are the packages whose NewDecoder reads values of any size.
var decoders = []string{"json", "jsonv2", "xml", "gob", "yaml", "toml"}

// growing are types that keep everything written to them.
var growing = []string{"strings.Builder", "bytes.Buffer"}

// unboundedReads returns the lines of a file that read without a bound, or that keep everything a
// program prints: a Builder or Buffer as Stdout or Stderr, or as the destination of io.Copy. A
// comment "//bounded: why" allows a line. It says that the stream is not a box's, or where its
// bound is.
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
	find := func(at token.Pos, what string) {
		if line := files.Position(at); !allowed[line.Line] {
			found = append(found, line.String()+": "+what)
		}
	}
	grows := growingVariables(file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of := nameOf(f.X)
			switch what := f.Sel.Name; {
			case of == "bounded", len(n.Args) > 0 && hasBound(n.Args[0]):
			case what == "ReadFrom" && (len(n.Args) != 1 || !grows(f.X)),
				// sql's, bufio.Scanner's
				strings.Contains(what, "can") && what != "NewScanner" && of != "fmt":
			case slices.Contains(readsAll, what), what == "NewDecoder" &&
				slices.Contains(decoders, of):
				find(f.Sel.Pos(), what)
			case strings.HasPrefix(what, "Copy") && of == "io" && grows(n.Args[0]) &&
				!(what == "CopyN" && isConstant(n.Args[2])):
				find(f.Sel.Pos(), what)
			}
		case *ast.KeyValueExpr:
			if key := nameOf(n.Key); (key == "Stdout" || key == "Stderr") && grows(n.Value) {
				find(n.Pos(), key)
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if f, ok := to.(*ast.SelectorExpr); ok && len(n.Rhs) == len(n.Lhs) &&
					(f.Sel.Name == "Stdout" || f.Sel.Name == "Stderr") && grows(n.Rhs[i]) {
					find(f.Sel.Pos(), f.Sel.Name)
				}
			}
		}
		return true
	})
	return found, nil
}

// nameOf returns the name of an identifier, or "" if e is something else.
func nameOf(e ast.Expr) string {
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// isCall reports whether e calls one of the functions, each given as "package.Name".
func isCall(e ast.Expr, functions ...string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(functions, nameOf(f.X)+"."+f.Sel.Name)
}

// hasBound reports whether a reader has a bound, or reads memory.
func hasBound(reader ast.Expr) bool {
	return isCall(reader, "io.LimitReader", "io.NewSectionReader", "http.MaxBytesReader",
		"bytes.NewReader", "bytes.NewBufferString", "strings.NewReader")
}

func isConstant(e ast.Expr) bool {
	constant := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.BasicLit, *ast.BinaryExpr, *ast.ParenExpr:
		default:
			constant = false
		}
		return true
	})
	return constant
}

// growingVariables returns a function that reports whether an expression is a Builder or Buffer, or
// the address of one. It identifies variables and fields by their names only.
func growingVariables(file *ast.File) func(ast.Expr) bool {
	names := map[string]bool{}
	isType := func(e ast.Expr) bool {
		if star, ok := e.(*ast.StarExpr); ok {
			e = star.X
		}
		f, ok := e.(*ast.SelectorExpr)
		return ok && slices.Contains(growing, nameOf(f.X)+"."+f.Sel.Name)
	}
	isValue := func(e ast.Expr) bool {
		if address, ok := e.(*ast.UnaryExpr); ok {
			e = address.X
		}
		switch e := e.(type) {
		case *ast.CompositeLit:
			return isType(e.Type)
		case *ast.CallExpr:
			return nameOf(e.Fun) == "new" && isType(e.Args[0]) ||
				isCall(e, "bytes.NewBuffer", "bytes.NewBufferString")
		}
		return false
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				names[name.Name] = names[name.Name] || n.Type != nil && isType(n.Type) ||
					i < len(n.Values) && isValue(n.Values[i])
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name := nameOf(to); name != "" && len(n.Rhs) == len(n.Lhs) && isValue(n.Rhs[i]) {
					names[name] = true
				}
			}
		case *ast.Field:
			for _, name := range n.Names {
				names[name.Name] = names[name.Name] || isType(n.Type)
			}
		}
		return true
	})
	return func(e ast.Expr) bool {
		if isValue(e) {
			return true
		}
		if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
			e = address.X
		}
		if f, ok := e.(*ast.SelectorExpr); ok {
			return names[f.Sel.Name]
		}
		return names[nameOf(e)]
	}
}

// notOfBoxes are the packages whose code reads no output of a box: tools of tests, and boxd, which
// runs in a box.
var notOfBoxes = []string{
	"bench/...", "internal/boxd", "internal/boxd/bin", "internal/test/...", "internal/tools/...",
	"sandbox/sandboxtest", "service/place/placetest",
}

// readsNoBox reports whether one of notOfBoxes matches a directory.
func readsNoBox(dir string) bool {
	return slices.ContainsFunc(notOfBoxes, func(pattern string) bool {
		above, tree := strings.CutSuffix(pattern, "/...")
		return dir == above || tree && strings.HasPrefix(dir, above+"/")
	})
}

// Only package bounded reads a stream of a box into memory.
func TestReads(t *testing.T) {
	root := filepath.Join("..", "..")
	var found []string
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		place, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		place = filepath.ToSlash(place)
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") &&
			place != ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || readsNoBox(path.Dir(place)) || !strings.HasSuffix(file, ".go") ||
			strings.HasSuffix(file, "_test.go") {
			return nil
		}
		files++
		reads, err := unboundedReads(file, nil)
		found = append(found, reads...)
		return err
	}))
	require.Greater(t, files, 400)
	for _, pattern := range notOfBoxes {
		dir, _ := strings.CutSuffix(pattern, "/...")
		require.DirExists(t, filepath.Join(root, filepath.FromSlash(dir)))
	}
	require.Empty(t, found, "use package bounded, or say why not in a comment //bounded: on the "+
		"line")
}

func TestReadsFinds(t *testing.T) {
	found, err := unboundedReads("f.go", `package f
type T struct { log bytes.Buffer; n int }
func f(t *T) {
	io.ReadAll(r)
	in.ReadString(10)
	io.ReadAll(r) //bounded: by what the caller gives
	io.ReadAll(r) //bounded: 
	json.NewDecoder(r)
	json.NewDecoder(bytes.NewReader(b))
	io.ReadAll(io.LimitReader(r, 5))
	io.ReadAll(bufio.NewReader(r))
	io.ReadAll(gzip.NewReader(r))
	io.ReadAll(sandbox.LimitReader(r))
	base64.NewDecoder(e, r)
	bounded.ReadAll(r, "it", 5)
	var out, errs strings.Builder
	box.Run(ctx, &sandbox.Cmd{Stdout: &out, Stderr: &errs}) //bounded: by mistake
	box.Run(ctx, &sandbox.Cmd{Stdout: &out, Stdin: r})
	cmd.Stderr = &errs
	cmd.Stdout, cmd.Dir = os.Stdout, "/"
	b := new(bytes.Buffer)
	io.Copy(b, r)
	io.CopyN(b, r, 1<<10)
	io.CopyN(b, r, n)
	io.Copy(&t.log, r)
	io.Copy(w, b)
	b.ReadFrom(r)
	conn.ReadFrom(p)
	archive.ReadFrom(r)
	fmt.Fscan(r, &v)
	rows.Scan(&v)
	out.WriteString(text)
}`)
	require.NoError(t, err)
	require.Equal(t, []string{
		"f.go:4:5: ReadAll", "f.go:5:5: ReadString", "f.go:7:5: ReadAll", "f.go:8:7: NewDecoder",
		"f.go:11:5: ReadAll", "f.go:12:5: ReadAll", "f.go:13:5: ReadAll",
		"f.go:18:28: Stdout", "f.go:19:6: Stderr", "f.go:22:5: Copy", "f.go:24:5: CopyN",
		"f.go:25:5: Copy", "f.go:27:4: ReadFrom", "f.go:30:6: Fscan",
	}, found)
}
