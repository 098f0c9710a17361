package tools

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient), Files(box.Files(), Config{}))
	require.Equal(t, "[wrote src/pkg/a.go, 18 bytes]\n",
		text(t, set, "write", "path", "src/pkg/a.go", "content", "one\ntwo\nthree\nü\n\n"))
	require.Equal(t, "one\ntwo\nthree\nü\n\n", text(t, set, "run", "command", "cat src/pkg/a.go"))
	require.Equal(t, "     1\tone\n     2\ttwo\n     3\tthree\n     4\tü\n     5\t\n",
		text(t, set, "read", "path", "src/pkg/a.go"))
	require.Equal(t, "     2\ttwo\n     3\tthree\n[more lines follow: read on with line 4]\n",
		text(t, set, "read", "path", "src/pkg/a.go", "line", 2, "lines", 2))
	require.Contains(t, refused(t, set, "read", "path", "src/pkg/a.go", "line", 6),
		"has only 5 lines")
	require.Contains(t, refused(t, set, "read", "path", "src/pkg/b.go"),
		"no such file or directory")
	require.Contains(t, refused(t, set, "read", "path", "src"), "is a directory: use `list`\n")
	for _, args := range [][]any{{"read"}, {"write", "content", ""},
		{"edit", "old", "a", "new", "b"}} {
		require.Equal(t, "error: the argument \"path\" is empty: give a file\n",
			refused(t, set, args[0].(string), append(args[1:], "path", "")...))
	}
	text(t, set, "write", "path", "empty", "content", "")
	require.Equal(t, "[the file is empty]\n", text(t, set, "read", "path", "empty"))

	require.Equal(t, "pkg/\n", text(t, set, "list", "path", "src"))
	require.Equal(t, "empty 0\nsrc/\n", text(t, set, "list"))
	require.Contains(t, refused(t, set, "list", "path", "empty"), "not a directory")
	text(t, set, "run", "command", "mkdir d && cd d && ln -s /nowhere link")
	require.Equal(t, "link (a symbolic link)\n", text(t, set, "list"), "the shell's directory")
	require.Equal(t, "[no entries]\n", text(t, set, "list", "path", t.TempDir()))
}

// TestScript shows that a new script can be run, and that a reply says so.
func TestScript(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient), Files(box.Files(), Config{}))
	const script = "#!/bin/sh\necho ran\n"
	require.Equal(t, "[wrote bin/a, 19 bytes, executable]\n",
		text(t, set, "write", "path", "bin/a", "content", script))
	require.Equal(t, "ran\n755 bin/a\n", text(t, set, "run", "command",
		"bin/a; stat -c '%a %n' bin/a"))
	text(t, set, "write", "path", "bin/b", "content", "no script")
	require.Equal(t, "[wrote bin/b, 19 bytes, not executable: it keeps its permissions, which "+
		"chmod +x changes]\n", text(t, set, "write", "path", "bin/b", "content", script))
	require.Equal(t, "644 bin/b\n", text(t, set, "run", "command", "stat -c '%a %n' bin/b"))
}

// TestNames shows that names with control characters cannot be taken for several names.
func TestNames(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient), Files(box.Files(), Config{}))
	text(t, set, "run", "command", `touch $'a\nb' $'\xff' ü $'\e[1m'; mkfifo pipe; mkdir $'d\t'`)
	require.Equal(t, "\"\\x1b[1m\" 0\n\"a\\nb\" 0\n\"d\\t\"/\npipe (no regular file)\nü 0\n"+
		"\"\\xff\" 0\n", text(t, set, "list"))
	require.Equal(t, "\"\\x1b[1m\"\n\"a\\nb\"\n\"d\\t\"\npipe\nü\n\"\\xff\"\n",
		text(t, set, "find", "pattern", "*"))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient), Files(box.Files(), Config{}))
	content := func() string { return text(t, set, "run", "command", "cat f; stat -c %a f") }
	text(t, set, "run", "command", `printf 'a = 1\nb = 2\na = 1\n  c  = 3\n' >f; chmod 640 f`)
	require.Equal(t, "[replaced in f at line 2]\n", text(t, set, "edit", "path", "f", "old",
		"b = 2", "new", "b = 5"))
	require.Equal(t, "a = 1\nb = 5\na = 1\n  c  = 3\n640\n", content())
	require.Equal(t, "error: the old text is in f 2 times, at the lines 1, 3: give more lines "+
		"around the place that you mean, or set all to replace it everywhere\n",
		refused(t, set, "edit", "path", "f", "old", "a = 1", "new", "a = 2"))
	require.Contains(t, refused(t, set, "edit", "path", "f", "old", "a = 3", "new", ""),
		"the old text is not in f: read the file")
	require.Contains(t, refused(t, set, "edit", "path", "f", "old", "c = 3", "new", ""),
		"differs only in white space")
	require.Contains(t, refused(t, set, "edit", "path", "f", "old", "", "new", "x"),
		"the old text is empty")
	require.Contains(t, refused(t, set, "edit", "path", "f", "old", "x", "new", "x"),
		"nothing was changed")
	require.Contains(t, refused(t, set, "edit", "path", "g", "old", "x", "new", "y"),
		"no such file")
	require.Equal(t, "[replaced 2 times in f, at the lines 1, 3]\n",
		text(t, set, "edit", "path", "f", "old", "a = 1", "new", "a = 2", "all", true))
	require.Equal(t, "[replaced in f at line 1]\n", text(t, set, "edit", "path", "f", "old",
		"a = 2\nb = 5\na = 2\n", "new", ""))
	require.Equal(t, "  c  = 3\n640\n", content())
	require.Contains(t, refused(t, set, "edit", "path", "f", "old", "a\r\n", "new", "a\n"),
		"which the file keeps")
}

// TestUTF16 shows that edit keeps a file in UTF-16.
func TestUTF16(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Files(box.Files(), Config{}))
	for name, c := range map[string]struct{ content, edited, broken string }{
		"little": {"\xff\xfea\x00\r\x00\n\x00\xfc\x00",
			"\xff\xfea\x00\r\x00\n\x00\xfc\x00\r\x00\n\x00=\xd8\x00\xde", "\xff\xfea\x00\x00\xd8"},
		"big": {"\xfe\xff\x00a\x00\r\x00\n\x00\xfc",
			"\xfe\xff\x00a\x00\r\x00\n\x00\xfc\x00\r\x00\n\xd8=\xde\x00", "\xfe\xff\x00a\xd8"},
	} {
		write := func(content string) {
			require.NoError(t, box.Files().WriteFile(t.Context(), name, []byte(content), 0o644))
		}
		write(c.content)
		text(t, set, "edit", "path", name, "old", "a\nü", "new", "a\nü\n😀")
		got, err := box.Files().ReadFile(t.Context(), name, 0)
		require.NoError(t, err)
		require.Equal(t, c.edited, string(got))
		write(c.broken)
		require.Contains(t, refused(t, set, "edit", "path", name, "old", "a", "new", "b"),
			"is not valid UTF-16")
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient), Files(box.Files(), Config{}))
	text(t, set, "run", "command", "mkdir -p a/b/c .git; touch a/x.go a/b/y.go a/b/c/z.go "+
		"a/b/c/z.txt w.go .git/q.go")
	require.Equal(t, "w.go\n", text(t, set, "find", "pattern", "*.go"))
	require.Equal(t, "a/b/c/z.go\na/b/y.go\na/x.go\nw.go\n",
		text(t, set, "find", "pattern", "**/*.go"))
	require.Equal(t, ".git/q.go\na/b/c/z.go\na/b/y.go\na/x.go\nw.go\n",
		text(t, set, "find", "pattern", "**/*.go", "ignored", true))
	require.Equal(t, ".git/q.go\n", text(t, set, "find", "pattern", ".git/*"))
	require.Equal(t, "[no files; left out what is ignored, 1 files and directories: set ignored "+
		"to look there too]\n", text(t, set, "find", "pattern", "**/q.go"))
	require.Equal(t, "a/b/c/z.go\na/b/y.go\n", text(t, set, "find", "pattern", "a/b/**/?.go"))
	require.Equal(t, "a/b/c/z.txt\n", text(t, set, "find", "pattern", "c/[z].*xt", "dir", "a/b"))
	require.Equal(t, "a/b\n", text(t, set, "find", "pattern", "./a/b"))
	require.Equal(t, "[no files]\n", text(t, set, "find", "pattern", "*.rs", "dir", "a"))
	require.Equal(t, "error: in the pattern \"b/[a\", the part \"[a\" has a [ without a ], or "+
		"ends in \\: write \\[ or \\\\ for the character itself\n",
		refused(t, set, "find", "pattern", "b/[a"))
	require.Contains(t, refused(t, set, "find", "pattern", "*", "dir", "nowhere"), "no such file")
	dir := strings.TrimSpace(text(t, set, "run", "command", "pwd -P"))
	require.Equal(t, dir+"/a/b/y.go\n", text(t, set, "find", "pattern", dir+"/a/b/*.go"))
}

// TestLongFiles shows that long files and lists are shortened, and that no more of a file is read
// than is shown.
func TestLongFiles(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, patient), Files(box.Files(), brief))
	text(t, set, "run", "command", "seq 100000 >numbers; head -c 100000 /dev/zero | tr '\\0' x "+
		">line; head -c 8192 line >huge; truncate -s 20G huge; mkdir many; cd many; touch $(seq "+
		"1000); cd ..")
	for line, pages := int64(1), 0; pages < 5; pages++ {
		page := text(t, set, "read", "path", "numbers", "line", line)
		require.LessOrEqual(t, len(page), 2048)
		for row := range strings.Lines(page) {
			if strings.HasPrefix(row, "[") {
				require.Equal(t, line, number(t, `read on with line (\d+)`, row))
				continue
			}
			require.Equal(t, fmt.Sprintf("%6d\t%d\n", line, line), row)
			line++
		}
	}
	require.Equal(t, " 99999\t99999\n100000\t100000\n",
		text(t, set, "read", "path", "numbers", "line", 99999))
	require.Contains(t, text(t, set, "read", "path", "line"), "x [… a line of 100000 bytes]\n")
	require.Contains(t, text(t, set, "list", "path", "many"),
		" more entries: use `find` with a pattern]\n")
	require.Contains(t, text(t, set, "find", "pattern", "many/*"),
		" more files: give a narrower pattern]\n")
	require.Contains(t, refused(t, set, "edit", "path", "huge", "old", "a", "new", "b"),
		"21474836480 bytes, more than 16777216")

	short := combined(t, Files(box.Files(), Config{MaxWait: 100 * time.Millisecond}))
	require.Equal(t, "error: not done after 100ms: read a smaller file, and no device or pipe\n",
		refused(t, short, "read", "path", "huge"), "the file is one line of 20 GB")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := set.Call(ctx, "read", args(t, "path", "huge"))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, box.Close())
	_, err = set.Call(t.Context(), "read", args(t, "path", "numbers"))
	require.ErrorIs(t, err, sandbox.ErrClosed)
}
