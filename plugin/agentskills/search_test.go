package agentskills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/stretchr/testify/require"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "search")
		here := strings.TrimSpace(do(t, b, "pwd"))
		do(t, b, `mkdir -p a/b .git a/.git; echo 'a.c abc' | tee a/one a/b/two .git/x a/.git/y >/dev/null; printf 'abc\nx\r\na.c \033[2J\r\n' >three
			printf 'a.c\0' >a/binary; ln -s three link; mkfifo fifo; ln -s a linked; printf 'v=1\n-v\n' >v=1`)
		sorted := func(command string) string { return do(t, b, command+" | sort") }
		require.Equal(t, lines("./a/b/two:1: a.c abc", "./a/one:1: a.c abc",
			"./three:3: a.c ^[[2J"), sorted("search_dir a.c"))
		require.Equal(t, lines("./a/b/two:1: a.c abc", "./a/one:1: a.c abc", "./three:1: abc",
			"./three:3: a.c ^[[2J"), sorted("search_dir --regex 'a.c|none'"))
		require.Equal(t, "a/b/two:1: a.c abc\n", strings.TrimPrefix(do(t, b, "search_dir a.c a/b"),
			"./"))
		require.Equal(t, here+"/a/b/two:1: a.c abc\n", do(t, b, "search_dir a.c "+here+"/a/b"))
		require.Equal(t, lines("./linked/b/two:1: a.c abc", "./linked/one:1: a.c abc"),
			strings.ReplaceAll(sorted("search_dir a.c linked"), "//", "/"))
		require.Equal(t, "./v=1:2: -v\n", do(t, b, "search_dir -- -v"))
		refused(t, b, 1, "search_dir zzz", "Nothing in . has zzz.")
		refused(t, b, 1, "search_dir zzz nodir", "There is no directory nodir.")
		refused(t, b, 1, "search_dir zzz three", "There is no directory three.")
		refused(t, b, 2, "search_dir", "an argument is missing")
		refused(t, b, 2, "search_dir ''", "TERM is empty")
		refused(t, b, 2, "search_dir 'a\nb'", "TERM has several lines")
		refused(t, b, 2, "search_dir --regex '('", "TERM is not a regular expression")
		refused(t, b, 2, "search_dir -v", "if it is an argument, put -- before it")

		require.Equal(t, lines("1:abc", "3:a.c ^[[2J"), do(t, b, "search_file --regex a.c three"))
		do(t, b, "open three")
		require.Equal(t, lines("3:a.c ^[[2J"), do(t, b, "search_file a.c"))
		refused(t, b, 1, "search_file zzz", here+"/three does not have zzz.")
		refused(t, b, 1, "search_file a.c a/binary", "is binary")

		require.Equal(t, lines("./a/b/two", "./a/one", "./link", "./linked", "./three"),
			sorted("find_file '[tol]*'"))
		require.Equal(t, "./a/one\n", do(t, b, "find_file one"))
		require.Equal(t, "./a/b/two\n", do(t, b, "find_file b/two"))
		require.Equal(t, "./a/b/two\n", do(t, b, "find_file 'a/*/two'"))
		require.Equal(t, "./v=1\n", do(t, b, "find_file v=1"))
		refused(t, b, 1, "find_file a", "In ., no file has that name.")
		refused(t, b, 1, "find_file x", "In ., no file has that name.")

		// Matches that are not shown are counted: in one file, in many files, and in more files
		// than one grep gets.
		do(t, b, `mkdir many; awk 'BEGIN { for (i = 0; i < 300; i++) { f = "many/" i; for (j = 0; j < 7; j++) print "word " j >f; close(f) } }'`)
		output := do(t, b, "search_dir word many")
		require.Equal(t, 101, strings.Count(output, "\n"))
		require.Contains(t, output, "\n(2000 more matches, 2100 in 300 files: give more of the "+
			"text, or a directory)\n")
		output = do(t, b, "find_file '*' many")
		require.Equal(t, 101, strings.Count(output, "\n"))
		require.Contains(t, output, "\n(200 more: give more of the name, or a directory)\n")
		do(t, b, `awk 'BEGIN { for (i = 0; i < 5000; i++) printf "long "; print "" }' >wide`)
		require.Equal(t, "1:"+strings.Repeat("long ", 40)+"… (24800 more bytes)\n",
			do(t, b, "search_file long wide"))
	})
}

// Names of files and texts may have any bytes.
func TestOddNames(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "odd")
		for _, name := range []string{
			"it's a \"b\" ünï→", "--help", "-dash", "new\nline", "\nfirst and last\n", "*",
			"$HOME`id`;#!&", "a=b", "~", "back\\slash\\n", "tab\there\x1b[31m", " ",
		} {
			json := func(format string) string {
				return fmt.Sprintf(format, strings.ReplaceAll(fmt.Sprintf("%q", name), `\x1b`,
					`\u001b`))
			}
			do(t, b, "mkdir ./"+shellquote.Quote(name)+" && cd ./"+shellquote.Quote(name))
			output, status := call(t, b, "create", json(`{"path": %s, "text": "some\ntext"}`))
			require.Zero(t, status, output)
			output, status = call(t, b, "edit",
				json(`{"file": %s, "start": 2, "end": 2, "text": "word"}`))
			require.Zero(t, status, output)
			require.NotContains(t, output, "\x1b")
			output, status = call(t, b, "insert", `{"line": 0, "text": "top", "file": null}`)
			require.Zero(t, status, output)
			require.Equal(t, "top\nsome\nword\n", do(t, b, "cat ./"+shellquote.Quote(name)))
			output, status = call(t, b, "search_file", json(`{"term": "word", "file": %s}`))
			require.Zero(t, status, output)
			require.Equal(t, "3:word\n", output)
			output, status = call(t, b, "open", json(`{"path": %s, "line": 3}`))
			require.Zero(t, status, output)
			do(t, b, "cd ..")
			output, status = call(t, b, "search_dir", json(`{"term": "word", "dir": %s}`))
			require.Zero(t, status, output)
			require.Contains(t, output, ":3: word\n")
			require.Equal(t, 1, strings.Count(output, "\n"), output)
			output, status = call(t, b, "find_file", json(`{"name": "*", "dir": %s}`))
			require.Zero(t, status, output)
			require.Equal(t, 1, strings.Count(output, "\n"), output)
			require.NotContains(t, output, "\x1b")
			require.Equal(t, "1\n", do(t, b, "ls ./"+shellquote.Quote(name)+
				" | wc -l | tr -d ' ' | sed 's/[2-9]/1/'"))
		}
		output, status := call(t, b, "search_dir", `{"term": "word"}`)
		require.Zero(t, status)
		require.Equal(t, 12, strings.Count(output, ":3: word\n"), output)

		for _, text := range []string{"it's", `"x"`, "-e", "--", "--help", "$(id)", "`id`", `\n`,
			`a\b`, "ü", "*", "[", ".", " ", "\t", "&", "%s"} {
			do(t, b, quoted("first\n"+text+"<\nlast\n")+" >text")
			output, status := call(t, b, "search_file", fmt.Sprintf(`{"term": %q, "file": "text"}`,
				text+"<"))
			require.Zero(t, status, text)
			require.Equal(t, "2:"+text+"<\n", output)
		}
	})
}
