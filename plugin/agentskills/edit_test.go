package agentskills_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// quoted returns a printf command that prints these bytes, which may be any but zero.
func quoted(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\%03o`, c)
	}
	return "printf '" + b.String() + "'"
}

// The file after an edit is compared byte by byte.
func TestEdit(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "edit")
		do(t, b, ": >file; open file")
		for _, c := range []struct{ name, before, call, args, after string }{
			{"Replace", "a\nb\nc\n", "edit", `{"start": 2, "end": 2, "text": "x\ny"}`,
				"a\nx\ny\nc\n"},
			{"All", "a\nb\nc\n", "edit", `{"start": 1, "end": 3, "text": "x\n"}`, "x\n"},
			{"Delete", "a\nb\nc\n", "edit", `{"start": 2, "end": 3, "text": ""}`, "a\n"},
			{"DeleteAll", "a\nb\nc\n", "edit", `{"start": 1, "end": 3, "text": ""}`, ""},
			{"EmptyLine", "a\nb\n", "edit", `{"start": 1, "end": 1, "text": "\n"}`, "\nb\n"},
			{"NoFinalNewline", "a\nb", "edit", `{"start": 2, "end": 2, "text": "x\ny"}`, "a\nx\ny"},
			{"NoFinalNewlineBefore", "a\nb", "edit", `{"start": 1, "end": 1, "text": "x"}`, "x\nb"},
			{"CRLF", "a\r\nb\r\nc\r\n", "edit", `{"start": 2, "end": 2, "text": "x\ny"}`,
				"a\r\nx\r\ny\r\nc\r\n"},
			{"CRLFGiven", "a\r\nb\r\nc\r\n", "edit", `{"start": 2, "end": 2, "text": "x\r\ny\r\n"}`,
				"a\r\nx\r\ny\r\nc\r\n"},
			{"CRLFNoFinalNewline", "a\r\nb", "edit", `{"start": 2, "end": 2, "text": "x\ny"}`,
				"a\r\nx\r\ny"},
			{"Mixed", "a\r\nb\nc\r\nd\n", "edit", `{"start": 2, "end": 2, "text": "x"}`,
				"a\r\nx\nc\r\nd\n"},
			{"MixedCRLF", "a\r\nb\nc\r\nd\n", "edit", `{"start": 3, "end": 3, "text": "x"}`,
				"a\r\nb\nx\r\nd\n"},
			{"Odd", "a\n", "edit",
				`{"start": 1, "end": 1, "text": "END\n$x \u0060y\u0060 \\n 'q' \"d\" \\\n\tä\u001b[0m\rz %s -e"}`, "END\n$x `y` \\n 'q' \"d\" \\\n\tä\x1b[0m\rz %s -e\n"},
			{"Bytes", "\xff\xfe\xc3\n\xa4\nb\n", "edit", `{"start": 3, "end": 3, "text": "x"}`,
				"\xff\xfe\xc3\n\xa4\nx\n"},
			{"Mark", "\ufeffa\nb\n", "edit", `{"start": 1, "end": 1, "text": "x"}`, "\ufeffx\nb\n"},
			{"MarkStays", "\ufeffa\nb\n", "edit", `{"start": 2, "end": 2, "text": "x"}`,
				"\ufeffa\nx\n"},
			{"MarkGiven", "\ufeffa\n", "edit", `{"start": 1, "end": 1, "text": "\ufeffx"}`,
				"\ufeffx\n"},
			{"MarkInsert", "\ufeffa\n", "insert", `{"line": 0, "text": "x"}`, "\ufeffx\na\n"},
			{"MarkReplace", "\ufeffa\nb\n", "str_replace", `{"old": "a\nb", "new": "x"}`,
				"\ufeffx\n"},

			{"InsertFirst", "a\n", "insert", `{"line": 0, "text": "x"}`, "x\na\n"},
			{"InsertMiddle", "a\nb\n", "insert", `{"line": 1, "text": "x\ny"}`, "a\nx\ny\nb\n"},
			{"InsertLast", "a\nb\n", "insert", `{"line": 2, "text": "x"}`, "a\nb\nx\n"},
			{"InsertLastNoFinalNewline", "a\r\nb", "insert", `{"line": 2, "text": "x"}`,
				"a\r\nb\r\nx"},
			{"InsertEmpty", "", "insert", `{"line": 0, "text": "x\ny"}`, "x\ny\n"},
			{"InsertCRLF", "a\r\nb\r\n", "insert", `{"line": 2, "text": "x\ny"}`,
				"a\r\nb\r\nx\r\ny\r\n"},

			{"Within", "one two three\n", "str_replace", `{"old": "two", "new": "2"}`,
				"one 2 three\n"},
			{"Numbers", "1.0\n10\n1\n", "str_replace", `{"old": "1.0\n10", "new": "1"}`, "1\n1\n"},
			{"NumbersAreText", "1\n2\n1.0\n2\n", "str_replace", `{"old": "1.0\n2", "new": "x"}`,
				"1\n2\nx\n"},
			{"Lines", "a\n  b\n  c\nd\n", "str_replace", `{"old": "  b\n  c\n", "new": "  x\n"}`,
				"a\n  x\nd\n"},
			{"FourLines", "a\nb\nc\nd\ne\nf\n", "str_replace", `{"old": "b\nc\nd\ne", "new": "x"}`,
				"a\nx\nf\n"},
			{"Remove", "a\nb\nc\n", "str_replace", `{"old": "b\n", "new": ""}`, "a\nc\n"},
			{"RemoveLast", "a\nb\n", "str_replace", `{"old": "b\n", "new": ""}`, "a\n"},
			{"RemoveAll", "a\nb\n", "str_replace", `{"old": "a\nb\n", "new": ""}`, ""},
			{"RemoveFinalNewline", "a\nb\n", "str_replace", `{"old": "b\n", "new": "b"}`, "a\nb"},
			{"AddFinalNewline", "a\nb", "str_replace", `{"old": "b", "new": "b\n"}`, "a\nb\n"},
			{"EmptyLast", "a\nb", "str_replace", `{"old": "\nb", "new": ""}`, "a"},
			{"Special", "a.*[x]\\n&$1\n", "str_replace",
				`{"old": ".*[x]\\n&$1", "new": "\\1&\\\\'\"$x"}`, "a\\1&\\\\'\"$x\n"},
			{"OldCRLF", "a\r\nb\r\nc\r\n", "str_replace", `{"old": "a\nb", "new": "x\ny\nz"}`,
				"x\r\ny\r\nz\r\nc\r\n"},
			{"Dash", "-e a\n", "str_replace", `{"old": "-e", "new": "--help"}`, "--help a\n"},
		} {
			do(t, b, quoted(c.before)+" >file; open file")
			output, status := call(t, b, c.call, c.args)
			require.Zerof(t, status, "%s: %s", c.name, output)
			require.Equal(t, c.after, read(t, b, "file"), c.name)
		}
		require.Equal(t, "file\n", do(t, b, "ls -A | cat"))
		require.Equal(t, "0\n",
			do(t, b, `ls "$(dirname "$(command -v open)")/../sessions" | grep -c -e work -e new; :`))
	})
}

// read returns the contents of a file, without going through the terminal.
func read(t *testing.T, b boxtest.Box, name string) string {
	t.Helper()
	res, err := b.Execute(t.Context(), ":")
	require.NoError(t, err)
	var out bytes.Buffer
	code, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"cat", "./" + name}, Dir: res.Cwd,
		Stdout: &out})
	require.NoError(t, err)
	require.Zero(t, code)
	return out.String()
}

func TestEditShows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "shows")
		here := strings.TrimSpace(do(t, b, "pwd"))
		numbers(t, b, "file", 30)
		require.Equal(t, "Replaced 3 lines at line 15 by 1 line.\n[File: "+here+
			"/file (28 lines total)]\n(4 more lines above)\n"+
			"5:line 5\n6:line 6\n7:line 7\n8:line 8\n9:line 9\n10:line 10\n11:line 11\n12:line "+
			"12\n13:line 13\n14:line 14\n15:new\n"+
			"16:line 18\n17:line 19\n18:line 20\n19:line 21\n20:line 22\n21:line 23\n22:line "+
			"24\n23:line 25\n24:line 26\n25:line 27\n(3 more lines below)\n",
			do(t, b, "edit 15:17 file <<'END'\nnew\nEND"))
		require.Contains(t, do(t, b, "insert 28 <<END\nx\nEND"), "Inserted 1 line at line 29.\n")
		require.Contains(t, do(t, b, "edit 1:5 </dev/null"), "Deleted 5 lines at line 1.\n")

		const unchanged = "Nothing is changed."
		do(t, b, "printf 'one\\n  two\\none\\n' >file; open file; printf 'a\\0b\\n' >binary")
		refused(t, b, 1, "edit 3:4 </dev/null", "file has 3 lines, so there is no line 4. "+
			unchanged)
		refused(t, b, 1, "insert 4 <<END\nx\nEND", "so there is no line 4. "+unchanged)
		refused(t, b, 2, "edit 3:2 </dev/null", "START is 3, which is after END, 2")
		refused(t, b, 2, "edit 0:2 </dev/null", "START is a line number from 1")
		refused(t, b, 2, "edit 1: </dev/null", "END is a line number from 1")
		refused(t, b, 2, "edit 1:1", "TEXT is missing: end the command's line with <<'END'")
		refused(t, b, 2, "insert 1 </dev/null", "TEXT is empty")
		refused(t, b, 1, `printf 'a\0' | edit 1:1`, "TEXT has zero bytes. "+unchanged)
		refused(t, b, 1, "edit 1:1 binary </dev/null", "binary is binary")
		refused(t, b, 1, "edit 1:1 . </dev/null", "is a directory")
		refused(t, b, 1, "str_replace one x", "OLD occurs 2 times, in lines 1, 3: give more of "+
			"the text around the one you mean. "+unchanged)
		refused(t, b, 1, "str_replace four x", "OLD does not occur in the file. "+unchanged)
		refused(t, b, 1, "str_replace '\ttwo\nthree' x",
			"But line 2 has its first line, or differs from it in white space only: compare all "+
				"lines. "+unchanged)
		refused(t, b, 2, "str_replace '' x", "OLD is empty")
		refused(t, b, 2, "str_replace one one", "OLD and NEW are the same")
		require.Equal(t, "one\n  two\none\n", do(t, b, "cat file"))
		require.Equal(t, "binary\nfile\n", do(t, b, "ls -A | cat"))
	})
}

// An edit keeps mode and links, and refuses a file that cannot be written.
func TestEditKeeps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "keeps")
		do(t, b, "echo a >script; chmod 751 script; mkdir dir; ln -s ../script dir/link; ln -s "+
			"dir/link link2")
		do(t, b, "echo b | edit 1:1 link2")
		require.Equal(t, "b\n-rwxr-x--x\n", do(t, b, "cat script; ls -l script | cut -c 1-10; "+
			"test -L link2 && test -L dir/link"))
		do(t, b, "ln script hard; echo c | edit 1:1 script")
		require.Equal(t, "c\n", do(t, b, "cat hard"), "the other link of the same file")
		do(t, b, "mkdir closed; echo a >closed/file; chmod 555 closed; echo b | edit 1:1 "+
			"closed/file; chmod 755 closed")
		require.Equal(t, "b\n", do(t, b, "cat closed/file"))
		do(t, b, "mkdir 'a\\b'; echo a >'a\\b/c\\td'; echo b | edit 1:1 'a\\b/c\\td'")
		require.Equal(t, "b\n", do(t, b, "cat 'a\\b/c\\td'"))
		if uid := do(t, b, "id -u"); uid != "0\n" {
			do(t, b, "chmod 444 script")
			refused(t, b, 1, "echo d | edit 1:1 script", "script is read-only for",
				"Nothing is changed.")
			do(t, b, "chmod 000 script")
			refused(t, b, 1, "open script", "cannot be read by")
		} else {
			do(t, b, "chown 12345:54321 script")
			do(t, b, "echo d | edit 1:1 script")
			require.Equal(t, "12345 54321\n", do(t, b, "ls -ln script | awk '{ print $3, $4 }'"))
		}
	})
}

func TestCreate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "create")
		here := strings.TrimSpace(do(t, b, "pwd"))
		require.Equal(t, "[File: "+here+"/a/b/c.txt (2 lines total)]\n1:x\n2:y\n",
			do(t, b, "create a/b/c.txt <<'END'\nx\ny\nEND"))
		require.Equal(t, "[File: "+here+"/empty (0 lines total)]\n(The file is empty: insert 0 "+
			"writes to it.)\n", do(t, b, "create empty"))
		do(t, b, "insert 0 <<'END'\nfirst\nEND")
		require.Equal(t, "first\n", do(t, b, "cat empty"))
		do(t, b, "ln -s nowhere dangling")
		refused(t, b, 1, "create empty", here+"/empty is there already, and is unchanged.")
		refused(t, b, 1, "create dangling", "is there already")
		refused(t, b, 1, "create a", "is there already")
		refused(t, b, 1, "create new/", "is a directory's name")
		refused(t, b, 1, "create empty/x", "The directory cannot be made")
		require.Contains(t, do(t, b, "create broken.sh <<'END'\nif true\nEND"),
			"Note that there is a syntax error:\n  broken.sh: ")
		do(t, b, "umask 027; create masked </dev/null; umask 022")
		require.Equal(t, "-rw-r-----\n", do(t, b, "ls -l masked | cut -c 1-10"))
		do(t, b, `export HOME="$PWD/home"`)
		output, status := call(t, b, "create", `{"path": "~/x", "text": "x"}`)
		require.Zero(t, status, output)
		require.Equal(t, "x\n", do(t, b, "cat home/x"))
	})
}

// If two edits happen at the same time, one may be refused, but none is lost without a word, and
// nobody sees half a file.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "atonce")
		here := strings.TrimSpace(do(t, b, "pwd"))
		do(t, b, ": >file")
		const sessions, rounds = 2, 8
		var all sync.WaitGroup
		done := make([]int, sessions)
		for i := range sessions {
			s, err := b.Open(t.Context(), sandbox.Dir(here))
			require.NoError(t, err)
			defer s.Close()
			all.Go(func() {
				for range rounds {
					res, err := s.Execute(t.Context(), fmt.Sprintf("insert 0 file <<'END'\n%d\nEND",
						i))
					if err != nil {
						t.Error(err)
						return
					}
					switch {
					case res.ExitCode == 0:
						done[i]++
					case res.ExitCode != 1 || !strings.Contains(res.Output,
						"changed by another program during this edit") &&
						!strings.Contains(res.Output, "has changed since it was last shown"):
						t.Errorf("exit status %d: %s", res.ExitCode, res.Output)
					}
				}
			})
		}
		all.Wait()
		text := do(t, b, "cat file")
		require.Equal(t, done[0], strings.Count(text, "0\n"))
		require.Equal(t, done[1], strings.Count(text, "1\n"))
		require.Equal(t, 2*(done[0]+done[1]), len(text))
		require.NotZero(t, done[0]+done[1])
		require.Equal(t, "file\n", do(t, b, "ls -A | cat"))
	})
}

// An edit by line numbers is refused if the file has changed since the session saw it.
func TestEditOfChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "changed")
		numbers(t, b, "file", 40)
		here := strings.TrimSpace(do(t, b, "pwd"))
		for _, c := range []struct{ command, after string }{
			{"edit 30:30 <<'END'\nnew\nEND", "new\nline 31\n"},
			{"edit 30:31 file <<'END'\nnew\nEND", "new\nline 32\n"},
			{"insert 30 <<'END'\nnew\nEND", "line 30\nnew\n"},
		} {
			do(t, b, "SANDSHELL_WINDOW=12 open file 30; sed -i '1i first' file")
			refused(t, b, 1, "SANDSHELL_WINDOW=12 "+c.command,
				here+"/file has changed since it was last shown", "Nothing is changed",
				"\n30:line 29\n", "\n39:line 38\n")
			require.NotContains(t, do(t, b, "cat file"), "new")
			do(t, b, "sed -i 1d file; open file")
			do(t, b, c.command) // as it was shown
			require.Contains(t, do(t, b, "cat file"), c.after)
			do(t, b, c.command) // one's own changes are shown
			do(t, b, "sed -i '1i first' file")
			refused(t, b, 1, c.command, "has changed since")
			do(t, b, c.command) // as it was shown by the refusal
			numbers(t, b, "file", 40)
		}
		// str_replace does not depend on line numbers. A change of a file that is not open does not
		// matter.
		do(t, b, "open file; echo more >>file")
		require.Contains(t, do(t, b, "str_replace 'line 7\n' 'seven\n'"), "7:seven\n")
		do(t, b, "echo x >other; open other; echo y >>other; open file; edit 1:2 other "+
			"<<'END'\nz\nEND")
		require.Equal(t, "z\n", do(t, b, "cat other"))
	})
}

// A LocalBox is on the user's own machine, so nothing outside its directories may change.
func TestLocalTouchesNothingElse(t *testing.T) {
	home, temp := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Run("Box", func(t *testing.T) {
		b := boxtest.Local(t, plugins()...)
		t.Setenv("TMPDIR", temp)
		enter(t, b, "w")
		do(t, b, "create x.py <<'END'\nx = 1\nEND")
		do(t, b, "edit 1:1 <<'END'\nx = 2\nEND")
		do(t, b, "search_dir x; find_file '*'")
		require.Equal(t, "x.py\n", do(t, b, "ls -A | cat"))
	})
	for _, dir := range []string{home, temp} {
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
