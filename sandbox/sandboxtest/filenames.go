package sandboxtest

import (
	"context"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// smallNames uses files and directories with odd names.
func smallNames(t *testing.T, b *box) {
	odd := []string{"a b", " lead", "trail ", "it's", `dq"`, "new\nline", "-dash", "--", "$HOME",
		"`x`", "*", "?", "[a]", `back\slash`, "日本 é", ".hidden", "...", "~", "~root", "#", "tab\t",
		"esc\x1b[31m", strings.Repeat("x", 240)}
	if runtime.GOOS == "linux" {
		odd = append(odd, "\xff\xfe")
	}
	dir := b.dir(t)
	// an overlay file system may allow less
	if longest := strings.Repeat("y", 255); strings.Contains(
		b.script(t, `mkdir -p "$1" && echo made || :`, dir+"/"+longest), "made") {
		odd = append(odd, longest)
	}
	for _, name := range odd {
		b.writeFile(t, dir+"/"+name+"/f", name, 0o644, sandbox.Parents())
		same(t, name, b.cat(t, dir+"/"+name+"/f"))
		same(t, name, b.readFile(t, dir+"/"+name+"/f"))
	}
	b.files(t, "ReadDir", func(ctx context.Context, f sandbox.Files) error {
		entries, err := f.ReadDir(ctx, dir)
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		require.ElementsMatch(t, odd, got)
		require.IsIncreasing(t, got)
		for _, name := range odd {
			if err := f.Rename(ctx, dir+"/"+name+"/f", dir+"/"+name+"/"+name); err != nil {
				return err
			}
			if err := f.Remove(ctx, dir+"/"+name+"/"+name); err != nil {
				return err
			}
		}
		return err
	})
}

// relativeFiles uses relative names. The main session must be in dir/sub, which has the files f and
// g.
func relativeFiles(t *testing.T, b *box, dir string) {
	t.Helper()
	require.Equal(t, []string{"f", "g"}, b.glob(t, "[fg]"))
	b.writeFile(t, "small", "small", 0o644)
	same(t, "small", b.cat(t, dir+"/sub/small"))
	same(t, "small", b.readFile(t, "../sub/./small"))
	b.writeFile(t, "./~", "tilde", 0o644)
	require.Equal(t, []string{"./~"}, b.glob(t, "[~]"))
}

// tilde uses ~, the home directory.
func tilde(t *testing.T, b *box) {
	b.needScript(t, "the user may not write to the home directory", "[ -w ~ ]")
	name := path.Base(b.dir(t)) + ".small"
	b.writeFile(t, "~/"+name, "content", 0o600)
	t.Cleanup(func() { b.sh(t, `rm -f ~/"$1"`, name) })
	same(t, "content", b.script(t, `cat ~/"$1"`, name))
	same(t, "content", b.readFile(t, "~/"+name))
	require.Equal(t, []string{"~/" + name}, b.glob(t, "~/"+name[:len(name)-2]+"*"))
}

// globs looks for files by patterns.
func globs(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir -p a/x b/x c && : > a/x/1.go && : > a/x/2.go && : > b/x/3.go && : > b/x/n.txt && ln -s a d && : > '[z]'`, dir)
	for pattern, want := range map[string][]string{
		"*/x/*.go": {"a/x/1.go", "a/x/2.go", "b/x/3.go", "d/x/1.go", "d/x/2.go"},
		"a/x/?.go": {"a/x/1.go", "a/x/2.go"}, "[bc]/x/*": {"b/x/3.go", "b/x/n.txt"},
		"a/x/1.go": {"a/x/1.go"}, "none/*": nil, "nothing": nil, `\[z\]`: {"[z]"},
		"*/*/../../c": {"a/x/../../c", "b/x/../../c", "d/x/../../c"}, "a/./x/1*": {"a/./x/1.go"},
	} {
		found := b.glob(t, dir+"/"+pattern)
		for i := range found {
			found[i] = strings.TrimPrefix(found[i], dir+"/")
		}
		require.Equal(t, want, found, pattern)
	}
	require.ErrorIs(t, b.withFiles(t, "Glob", func(ctx context.Context, f sandbox.Files) error {
		return errorOf(f.Glob(ctx, dir+"/["))
	}), path.ErrBadPattern)
}
