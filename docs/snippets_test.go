package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A snippet is a block of Go code in a document.
type snippet struct {
	where string // its file and line
	code  string
}

// snippets returns the blocks of a document that begin with "```go".
func snippets(t *testing.T, path string) []snippet {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var found []snippet
	var code *strings.Builder
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "```go":
			code = &strings.Builder{}
			found = append(found, snippet{where: fmt.Sprintf("%s:%d", filepath.Base(path), i+2)})
		case line == "```" && code != nil:
			found[len(found)-1].code = code.String()
			code = nil
		case code != nil:
			code.WriteString(line + "\n")
		}
	}
	require.Nil(t, code, "%s: the last block has no end", path)
	return found
}

// imports maps the names of packages that a fragment may use to their paths.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "json": "encoding/json", "log": "log",
	"http": "net/http", "os": "os", "regexp": "regexp", "strings": "strings", "time": "time",
}

func init() {
	for _, path := range []string{"sandbox", "sandbox/recording", "sandbox/tracing",
		"sandbox/logging", "sandbox/shellbox", "sandbox/sandboxtest", "localbox", "sshbox",
		"kubebox", "e2bbox", "egress", "harness", "service", "service/pods", "tools", "tools/mcp",
		"plugin", "plugin/jupyter", "plugin/browser", "plugin/agentskills", "plugin/pytool"} {
		imports[filepath.Base(path)] = "github.com/sandshell/sandshell/" + path
	}
}

var (
	comment = regexp.MustCompile(`//.*`)
	literal = regexp.MustCompile("\"[^\"\n]*\"|`[^`]*`")
	used    = regexp.MustCompile(`\b([a-z0-9]+)\.[A-Z]`)
	defined = regexp.MustCompile(`\bbox(, \w+)? :=`)
)

// file returns a Go file with the snippet as the body of the function name(ctx) error. If the
// snippet uses a box and does not make it, the box is nil, and the file can only be compiled.
func (s snippet) file(pkg, name string) []byte {
	plain := literal.ReplaceAllString(comment.ReplaceAllString(s.code, ""), `""`)
	var paths []string
	for _, m := range used.FindAllStringSubmatch(plain, -1) {
		if path := imports[m[1]]; path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	before := ""
	if strings.Contains(plain, "box") && !defined.MatchString(plain) {
		before = "var box *sshbox.DockerSSHBox\n_ = box\n"
		if path := imports["sshbox"]; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if !slices.Contains(paths, "context") {
		paths = append(paths, "context")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\nimport (\n", pkg)
	for _, path := range paths {
		fmt.Fprintf(&b, "\t%q\n", path)
	}
	fmt.Fprintf(&b, ")\n\nfunc %s(ctx context.Context) error {\n%s//line %s\n%sreturn nil\n}\n",
		name,
		before, s.where, s.code)
	return b.Bytes()
}

// TestSnippets compiles every block of Go code in the documents: whole programs as they are, and
// fragments as the body of a function.
func TestSnippets(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	require.NoError(t, err)
	dir := t.TempDir()
	var fragments []string
	for _, document := range append(documents, "../README.md") {
		for _, s := range snippets(t, document) {
			name := filepath.Join(dir, strings.NewReplacer(".", "_", ":", "_").Replace(s.where)+
				".go")
			if strings.HasPrefix(s.code, "package ") {
				require.NoError(t, os.WriteFile(name, []byte(s.code), 0o644))
				vet(t, name)
				continue
			}
			code := s.file("snippets", fmt.Sprintf("fragment%d", len(fragments)))
			require.NoError(t, os.WriteFile(name, code, 0o644))
			fragments = append(fragments, name)
		}
	}
	require.NotEmpty(t, fragments)
	vet(t, fragments...)
}

// vet runs go vet on files.
func vet(t *testing.T, files ...string) {
	cmd := exec.Command("go", append([]string{"vet"}, files...)...)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestLinks shows that every relative link of a document leads to a file.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	documents, err := filepath.Glob("*.md")
	require.NoError(t, err)
	root, err := filepath.Glob("../*.md")
	require.NoError(t, err)
	for _, document := range append(documents, root...) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			require.FileExists(t, filepath.Join(filepath.Dir(document), m[1]),
				"%s: %s", document, m[0])
		}
	}
}
