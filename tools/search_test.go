package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeFiles writes files into a directory. files are names and contents.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Files(box.Files(), Config{}))
	long := strings.Repeat("ü", 1000) + "needle" + strings.Repeat("x", 1000) + "\n"
	writeFiles(t, box.Dir(), map[string]string{
		"a/one.go":          "package a\r\n\r\nfunc One() {}\r\n// the needle\r\n",
		"a/two.txt":         "1\n2 needle\n3\n4\n5\n6\n7 Needle\n8\n9 needle\n10",
		"b.bin":             "\x00\x01needle",
		"c.bin":             "\x00\x01nothing",
		"latin":             "\xfcber needle\n",
		"long":              long,
		"utf16":             "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00\n\x00",
		"sub/.gitignore":    "gen/\n",
		"sub/gen/needle":    "needle\n",
		".git/needle":       "needle\n",
		"sub/x/y/z.go":      "needle\n",
		"many":              strings.Repeat("needles\n", maxMatching+3),
		"large/log":         strings.Repeat("line\n", maxSearched/5) + "needle\n",
		"name\nwith end":    "needle\n",
		"empty":             "",
		"none/no/match/any": "haystack\n",
	})
	require.NoError(t, os.Symlink("a/two.txt", box.Dir()+"/link"))
	require.NoError(t, exec.Command("mkfifo", box.Dir()+"/pipe").Run())
	require.Equal(t, "a/one.go\n4:// the needle\n\na/two.txt\n2:2 needle\n9:9 needle\n\n"+
		"[b.bin is a binary file, and matches]\n\nlatin\n1:\ufffdber needle\n\nlong\n1:…"+
		strings.Repeat("ü", 50)+"needle"+strings.Repeat("x", 194)+"… [a line of 3006 bytes]\n\n"+
		"many\n"+numbered(1, maxMatching, "needles")+"[3 more lines of this file match: give its "+
		"path to see them]\n\n\"name\\nwith end\"\n1:needle\n\nsub/x/y/z.go\n1:needle\n\nutf16\n"+
		"1:needle\n[not searched: large/log, which has more than 4 MiB]\n",
		text(t, set, "search", "pattern", "needle"))
	require.Equal(t, "many\n"+numbered(1, maxMatching+3, "needles"),
		text(t, set, "search", "pattern", "needle", "path", "many"))
	require.Equal(t, "a/two.txt\n1-1\n2:2 needle\n3-3\n--\n6-6\n7:7 Needle\n8-8\n9:9 needle\n"+
		"10-10\n", text(t, set, "search", "pattern", "(?i)needle", "files", "*.txt", "context", 1))
	require.Equal(t, "sub/x/y/z.go\n1:needle\n", text(t, set, "search", "pattern", "^needle$",
		"files", "sub/**/*.go"))
	require.Equal(t, "sub/gen/needle\n1:needle\n\nsub/x/y/z.go\n1:needle\n", text(t, set,
		"search", "pattern", "needle", "path", "sub", "ignored", true))
	require.Equal(t, "sub/gen/needle\n1:needle\n", text(t, set, "search", "pattern", "needle",
		"path", "sub/gen"), "the model has named the directory")
	require.Equal(t, "[no matches; left out what is ignored, 1 files and directories: set ignored "+
		"to look there too]\n", text(t, set, "search", "pattern", "absent", "path", "sub"))
	require.Equal(t, "[no matches]\n", text(t, set, "search", "pattern", "x", "path", "empty"))

	require.Equal(t, "error: the pattern \"f(\" is no regular expression in RE2's syntax, which "+
		"has neither lookaround nor backreferences: missing closing ): `f(`. Put a \\ before "+
		"( ) [ ] { } . * + ? | ^ $ to look for the character itself\n",
		refused(t, set, "search", "pattern", "f("))
	require.Contains(t, refused(t, set, "search", "pattern", "a(?=b)"), "neither lookaround")
	require.Contains(t, refused(t, set, "search", "pattern", ""), "is empty")
	require.Contains(t, refused(t, set, "search", "pattern", "a", "path", "nowhere"),
		"no such file")
	require.Contains(t, refused(t, set, "search", "pattern", "a", "files", "[a"), "a [ without")
	require.Contains(t, refused(t, set, "search", "pattern", "a", "path", "large/log"),
		"more than 4194304 bytes: run a program such as grep")
	require.Contains(t, refused(t, set, "search", "pattern", "a", "context", 21), "from 0 to 20")
	require.Contains(t, refused(t, set, "search", "pattern", "a", "path", "pipe"), "pipe")
}

// numbered returns lines as a search shows them.
func numbered(from, to int, line string) string {
	text := ""
	for i := from; i <= to; i++ {
		text += fmt.Sprintf("%d:%s\n", i, line)
	}
	return text
}

// TestSearchIsBounded shows that a reply has a bound, and that a search stops once it is full.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Files(box.Files(), brief))
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("%03d/f", i)] = strings.Repeat("needle\n", 60)
	}
	writeFiles(t, box.Dir(), files)
	got := text(t, set, "search", "pattern", "needle")
	require.LessOrEqual(t, len(got), MinReply)
	require.True(t, strings.HasPrefix(got, "000/f\n1:needle\n"), got)
	require.True(t, strings.HasSuffix(got,
		"needle\n[more matches follow: give a narrower pattern, path or files]\n"), got)
}

// TestIgnored shows that find leaves out exactly the files that git does.
func TestIgnored(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	box := local(t)
	set := combined(t, Files(box.Files(), Config{MaxReply: 1 << 20}))
	dir := box.Dir()
	git := func(args ...string) string {
		cmd := exec.Command("git",
			append([]string{"-C", dir, "-c", "core.excludesFile="}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	git("init", "-q")
	files := map[string]string{
		".gitignore": "\xef\xbb\xbf# a comment\n\n*.o\n!keep.o\n/top\nbuild/\nsub/only\na/**/z\n" +
			"logs/**\n!logs/keep\n**/deep\nfoo*bar\n[!a-y]x\n\\#hash\n\\!bang\n/!slash\n" +
			"trailing   \nspace\\ \ncr\r\nun**ited\n[\nnode_modules\nq?\n*.tmp\n!/x.tmp\nd/*\n" +
			"!d/in/\n\xff\n",
		"a/.gitignore":     "!x.o\n*.txt\n/local\n",
		"a/b/.gitignore":   "!c.txt\n",
		"logs/sub/f":       "",
		"sub/a/.gitignore": "*\n!*.go\n!.gitignore\n",
	}
	for _, name := range strings.Fields("x.o keep.o a/x.o a/y.o a/b/x.o top a/top build/f " +
		"a/build/f a/b/build sub/only a/sub/only a/z a/b/z a/b/c/z z logs/f logs/keep " +
		"logs/sub/keep deep a/deep/f foobar fooXbar foo/bar zx ax #hash !bang a/!bang !slash " +
		"a/!slash trailing cr united unXited node_modules/m/f a/node_modules/f qq a/q1 q " +
		"x.tmp y.tmp a/x.tmp a/f.txt a/b/c.txt a/b/d.txt a/local a/b/local d/f d/in/f " +
		"d/in/x.o sub/a/f.go sub/a/f.c f.txt sub/a/g/h.go") {
		files[name] = "x\n"
	}
	files["space "] = "x\n"
	writeFiles(t, dir, files)

	for _, at := range []string{".", "a", "a/b", "sub/a", "d"} {
		var got string
		for line := range strings.Lines(text(t, set, "find", "pattern", "**", "dir", at)) {
			info, err := os.Stat(filepath.Join(dir, strings.TrimSuffix(line, "\n")))
			if err == nil && !info.IsDir() {
				got += line
			}
		}
		want := git("-c", "core.quotePath=off", "ls-files", "--others", "--exclude-standard", "--",
			at)
		require.NotEmpty(t, want)
		require.ElementsMatch(t, strings.Split(want, "\n"), strings.Split(got, "\n"), at)
	}
	abs := text(t, set, "find", "pattern", "**/*.txt", "dir", dir+"/a")
	require.Equal(t, dir+"/a/b/c.txt\n", abs, "an absolute path heeds the repository's files too")
}
