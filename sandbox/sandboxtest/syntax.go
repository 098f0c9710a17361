package sandboxtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// syntax executes commands of any form and length, as a person would type or paste them.
func (s *suite) syntax(t *testing.T) {
	b := s.box(t)
	b.scripts(t, "01_Lines", []script{
		{"Several", "echo one\n\n\n# a comment\necho two\n\n", "one\ntwo\n", 0, ""},
		{"OnlyComment", "# nothing to do", "", 0, ""},
		{"Empty", "", "", 0, ""},
		{"Blank", " \t ", "", 0, ""},
		{"OnlyNewlines", "\n\n\n", "", 0, ""},
		{"CommentAtEnd", "echo x # y", "x\n", 0, ""},
		{"QuoteInComment", "echo a # it's\n# \"\n# $( `\necho b", "a\nb\n", 0, ""},
		{"Indented", "\n    echo x\n\techo y\n  ", "x\ny\n", 0, ""},
		{"LastStatus", "true\nfalse\n\n# end\n", "", 1, ""},
		{"StatusOfMiddleIsForgotten", "false\ntrue", "", 0, ""},
		{"Many", repeat("echo %d\n", 2000), lines(1, 2000), 0, ""},
	})
	b.scripts(t, "02_ContinuationLines", []script{
		{"Backslash", "echo \\\n  foo", "foo\n", 0, ""},
		{"BackslashThenOption", "echo \\\n -e \"foo\"", "foo\n", 0, "bash: echo -e"},
		{"EchoEOverTwoLines", "echo -e \"hello\nworld\"", "hello\nworld\n", 0, "bash: echo -e"},
		{"InDoubleQuotes", "printf '%s\\n' \"hello\n\nworld\"", "hello\n\nworld\n", 0, ""},
		{"InSingleQuotes", "printf '%s\\n' 'hello\n\n  world'", "hello\n\n  world\n", 0, ""},
		{"InAWord", "ec\\\nho joined", "joined\n", 0, ""},
		{"AfterPipe", "echo a |\n\n  cat", "a\n", 0, ""},
		{"AfterAnd", "true &&\n  echo b", "b\n", 0, ""},
		{"InParentheses", "(\necho a\n\necho b\n)", "a\nb\n", 0, ""},
		{"InSubstitution", "echo \"$(\necho a\n)\"", "a\n", 0, ""},
		{"SeveralInARow", "printf '%s.' a \\\n b \\\n c", "a.b.c.", 0, ""},
	})
	b.scripts(t, "03_HereDocuments", hereDocuments())
	b.scripts(t, "04_CompoundCommands", compoundCommands)
	b.test(t, "04_FunctionCalledInTheNext", func(t *testing.T, sh *shell) {
		require.Empty(t,
			sh.output("greet() {\n  # says hello\n  echo \"hello $1\"\n\n  return 3\n}"))
		exitedWith(t, sh.exec("greet ann"), 3, "hello ann\n")
	})
	b.scripts(t, "05_Quoting", quoting())
	b.test(t, "05_NULByte", func(t *testing.T, sh *shell) {
		// No shell can execute this: the call may return an error or a Result, but the session goes
		// on.
		within(b, t, "Execute", sh.executeCall("echo a\x00b"))
	})
	b.sections(t, []section{
		{"06_SyntaxErrors", syntaxErrors},
		{"06_AbortingErrors", abortingErrors},
		{"07_Length", lengths},
	})
	b.scripts(t, "08_Ends", []script{
		{"DoubleSemicolon", "case x in x) echo a;; esac", "a\n", 0, ""},
		{"Semicolon", "echo a;", "a\n", 0, ""},
		{"SemicolonThenLine", "echo a;\necho b;", "a\nb\n", 0, ""},
		{"CRLF", "echo a\r\necho b\r\n", "a\nb\n", 0, ""},
		{"CRLFInCompound", "if true\r\nthen\r\n  echo yes\r\nfi\r\n", "yes\n", 0, ""},
		{"CRLFInHereDocument", "cat <<EOF\r\na\r\n\r\nb\r\nEOF\r\n", "a\n\nb\n", 0, ""},
		{"CRLFAfterACommand", "true\r\ncd .\r\n", "", 0, ""},
	})
	parallel(t, "08_Ampersand", func(t *testing.T) {
		// An interactive shell may print the job's number.
		for _, c := range []named{
			{"ThenLine", "sleep 0.1 &\necho next"},
			{"ThenCommand", "sleep 0.1 & echo next"},
			{"AtEnd", "echo next; sleep 0.1 &"},
			{"WithStatus", "(exit 5) &\nwait $!; echo next"},
		} {
			b.test(t, c.name, func(t *testing.T, sh *shell) {
				require.Contains(t, sh.output(c.command), "next\n")
				sh.output("wait")
			})
		}
	})
}

// repeat formats 1 to n.
func repeat(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

var compoundCommands = []script{
	{"NestedFor", "for i in 1 2\ndo\n  for j in a b\n  do\n    echo \"$i$j\" > " +
		"\"$i$j.txt\"\n  done\ndone\ncat *.txt", "1a\n1b\n2a\n2b\n", 0, ""},
	{"If", "if false\nthen\n  echo no\nelif true\nthen\n  echo yes\nelse\n  echo no\nfi",
		"yes\n", 0, ""},
	{"Case", "case abc in\n  x*)\n    echo no\n    ;;\n  a*)\n    echo yes\n    ;;\nesac",
		"yes\n", 0, ""},
	{"While", "i=0\nwhile [ \"$i\" -lt 3 ]\ndo\n\n  # count\n  i=$((i + 1))\n  echo " +
		"\"$i\"\ndone", "1\n2\n3\n", 0, ""},
	{"Until", "until true; do\n:\ndone; echo done", "done\n", 0, ""},
	{"GroupIntoFile", "{\n  echo a\n  echo b\n} > f\ncat f", "a\nb\n", 0, ""},
	{"Subshell", "(\n  cd /\n  pwd\n)", "/\n", 0, ""},
	{"Function", "f()\n{\n  echo \"f $1\"\n\n  return 4\n}\nf x", "f x\n", 4, ""},
	{"Recursion", "f() {\n[ \"$1\" -eq 0 ] && return\necho \"$1\"\nf $(($1 - 1))\n}\nf 3",
		"3\n2\n1\n", 0, ""},
	{"Arithmetic", "echo $((\n1 +\n2\n))", "3\n", 0, ""},
}

func hereDocuments() []script {
	quoted := "$HOME `x` \\ it's \"quoted\"\n"
	return []script{
		{"Python", "python3 <<EOF\nfor i in range(2):\n    print(i)\n\nprint('x')\nEOF",
			"0\n1\nx\n", 0, "python3"},
		{"HundredLines", "cat <<EOF\n" + lines(1, 100) + "EOF", lines(1, 100), 0, ""},
		{"Long", "cat <<'EOF'\n" + lines(1, 20000) + "EOF\n", lines(1, 20000), 0, ""},
		{"BlankLines", "cat <<EOF\n\na\n\n\nb\n\nEOF\n", "\na\n\n\nb\n\n", 0, ""},
		{"QuotedIntoTail", "cat <<'EOF' 2>&1 | tail -n 2\n$HOME\n`x`\n\\\nEOF", "`x`\n\\\n", 0, ""},
		{"Quoted", "cat <<'EOF'\n" + quoted + "EOF", quoted, 0, ""},
		{"Expanded", "x=1\ncat <<EOF\n$x $((x + 1)) $(echo 3) \\$x\nEOF", "1 2 3 $x\n", 0, ""},
		{"InAList", "echo a; cat <<EOF; echo c\nb\nEOF\necho d", "a\nb\nc\nd\n", 0, ""},
		{"Two", "cat <<A; cat <<B\na\nA\nb\nB\n", "a\nb\n", 0, ""},
		{"TabsStripped", "cat <<-EOF\n\tindented\n\t\ttwice\n\tEOF\n", "indented\ntwice\n", 0, ""},
		{"IntoAFile", "cat > f <<'EOF'\n" + quoted + "EOF\ncat f", quoted, 0, ""},
		{"IntoALoop", "while read -r l; do echo \"<$l>\"; done <<EOF\na\nb\nEOF", "<a>\n<b>\n", 0,
			""},
		{"InAFunction", "f() {\ncat <<EOF\n$1\nEOF\n}\nf x", "x\n", 0, ""},
		{"LikePrompts", "cat <<'EOF'\n> x\n$ y\n# z\nEOF", "> x\n$ y\n# z\n", 0, ""},
		{"OfAShell", "sh <<'EOF'\necho \"a $((1 + 1))\"\nexit 3\nEOF", "a 2\n", 3, ""},
		{"HereString", "cat <<< x", "x\n", 0, "bash: <<<"},
	}
}

func quoting() []script {
	controls := "\x01\x02\x03\x04\x05\x08\x0b\x0c\x0f\x11\x12\x13\x14" +
		"\x15\x16\x17\x19\x1a\x1b\x1c\x1d\x7f"
	dump := " | od -An -tx1 | tr -d ' \\n'"
	return []script{
		{"FindExec", "mkdir d && touch d/b d/a\nfind d -type f -exec echo {} \\; | sort",
			"d/a\nd/b\n", 0, ""},
		{"DoubleBrackets", "[[ a == a && b != c ]] && echo yes", "yes\n", 0, "bash: [[ ]]"},
		{"AnsiC", "printf '%s' $'a\\tb\\n'", "a\tb\n", 0, "bash: $'…'"},
		{"ProcessSubstitution", "cat <(echo a)", "a\n", 0, "bash: <( )"},
		{"Braces", "echo {a,b}{1..2}", "a1 a2 b1 b2\n", 0, "bash: { , }"},
		{"BackslashesAtLineEnds", "printf '%s\\n' 'a\\\nb' \"c\\\\\nd\"", "a\\\nb\nc\\\nd\n", 0,
			""},
		{"Bang", `echo A!B "c!d" '!e' ! !!`, "A!B c!d !e ! !!\n", 0, ""},
		{"SingleInSingle", `echo 'it'\''s' "it's" it\'s`, "it's it's it's\n", 0, ""},
		{"DoubleInSingle", `echo '"a"' "\"b\"" "'c'"`, "\"a\" \"b\" 'c'\n", 0, ""},
		{"Dollar", `printf '%s\n' '$HOME' "\$HOME" \$HOME`, "$HOME\n$HOME\n$HOME\n", 0, ""},
		{"Percent", `printf '%s %%\n' %d`, "%d %\n", 0, ""},
		{"Backquotes", "echo `echo \\`echo a\\``", "a\n", 0, ""},
		{"NestedSubstitution", `echo "$(echo "$(echo 'a b')")"`, "a b\n", 0, ""},
		{"Globs", `printf '%s\n' '*' "?" \[a]`, "*\n?\n[a]\n", 0, ""},
		{"NoMatch", `echo nothing*here`, "nothing*here\n", 0, ""},
		{"Spaces", "set -- 'a  b' '' ' c '; printf '<%s>' \"$@\"", "<a  b><>< c >", 0, ""},
		{"Unicode", "printf '%s\\n' 'naïve 日本 🎉 \u00a0'", "naïve 日本 🎉 \u00a0\n", 0, ""},
		{"NotUTF8", "printf '%s' '\xff\xfe\xc3'" + dump, "fffec3", 0, ""},
		{"ControlCharacters", "printf '%s' '" + controls + "'" + dump, fmt.Sprintf("%x", controls),
			0, ""},
		{"ControlCharactersInALongCommand", "printf '%s' '" + strings.Repeat(controls, 300) + "'" +
			dump, strings.Repeat(fmt.Sprintf("%x", controls), 300), 0, ""},
		{"Tab", "printf '%s' 'a\tb'", "a\tb", 0, ""},
		{"CarriageReturn", "printf '%s' 'a\rb'" + dump, "610d62", 0, ""},
	}
}

// syntaxErrors executes commands that the shell cannot parse.
func syntaxErrors(t *testing.T, b *box) {
	for _, c := range []named{
		{"Parenthesis", "(a"}, {"ClosingParenthesis", ")"}, {"SingleQuote", "echo 'a"},
		{"DoubleQuote", "echo \"a"},
		{"Done", "done"}, {"Fi", "fi"}, {"If", "if true; then"}, {"For", "for i in"},
		{"While", "while true; do\necho a"},
		{"Case", "case x in"}, {"Brace", "{ echo a"}, {"Function", "f() {"}, {"And", "&& x"},
		{"Pipes", "a | | b"}, {"DoubleSemicolon", ";;"},
		{"Semicolon", ";"}, {"Substitution", "echo $("}, {"Backquote", "echo `a"},
		{"Expansion", "echo ${a"}, {"Arithmetic", "echo $((1 +"},
		{"InTheMiddle", "if true; then\n  echo a\n  )\nfi\necho b"},
		{"Long", "echo '" + strings.Repeat("a", 10000)},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			res := sh.exec(c.command)
			codes := []int{2}
			if c.name == "Substitution" {
				codes = append(codes, 1) // of an interactive bash
			}
			exited(t, res, codes...)
			require.NotEmpty(t, strings.TrimSpace(res.Output), "the shell's message")
			require.False(t, res.Restarted, "Restarted")
		})
	}
	b.test(t, "HereDocumentWithoutEnd", func(t *testing.T, sh *shell) {
		// Shells execute this, some with a warning.
		require.Contains(t, sh.output("cat <<EOF\na\n\nb"), "a\n\nb\n")
	})
	b.test(t, "BackslashAtTheEnd", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("echo a \\"))
	})
}

// abortingErrors executes commands with errors after which a shell drops the rest of its input, and
// so any code that an implementation adds to the command.
func abortingErrors(t *testing.T, b *box) {
	for _, c := range []named{
		{"UnsetExpansion", `: "${NOPE:?is not set}"`},
		{"SetU", `set -u; echo "$NOPE"`},
		{"Readonly", "readonly R=1; R=2"},
		{"Division", "echo $((1 / 0))"},
		{"Redirection", "exec 3< no/such/file"},
		{"Source", ". ./nosuchfile"},
		{"Option", "set -o nosuchoption"},
		{"BadSubst", "echo ${a!b}"},
		{"Shift", "shift 99"},
		{"CD", "cd no/such/dir"},
		{"NotFound", "nosuchcommand"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			res := sh.exec(c.command)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			require.NotZero(t, res.ExitCode, "ExitCode")
			if c.name != "Shift" { // bash prints nothing
				require.NotEmpty(t, strings.TrimSpace(res.Output), "the shell's message")
			}
			require.False(t, res.Restarted, "Restarted")
		})
	}
	for _, c := range []named{{"Return", "return 3"}, {"Break", "break"},
		{"Continue", "continue"}} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			sh.mayRestart = true
			exited(t, sh.exec(c.command))
		})
	}
}

// lengths executes long commands: a terminal cuts lines at 4,096 bytes, and an argument of a
// program ends at 128 KiB.
func lengths(t *testing.T, b *box) {
	of := func(n int, fill string) (command, want string) {
		const head, tail = "printf '%s\\n' '", "'"
		want = strings.Repeat(fill, n/len(fill)+1)[:n-len(head)-len(tail)]
		return head + want + tail, want + "\n"
	}
	for _, n := range []int{4094, 4095, 4096, 4097, 5000, 8191, 8192, 70_000, 131_072,
		b.suite.pick(200_000, 1<<20)} {
		b.test(t, fmt.Sprintf("%dBytes", n), func(t *testing.T, sh *shell) {
			command, want := of(n, "The quick brown fox jumps over 0123456789 lazy dogs. ")
			require.Len(t, command, n)
			same(t, want, sh.output(command, sandbox.MaxOutput(2<<20)))
		})
	}
	for _, c := range []named{
		{"Lines", "a line of it\n"},
		{"Word", "x"},
		{"Quotes", `"`},
		{"Backslashes", `\`},
		{"Spaces", " "},
		{"Newlines", "\n"},
		{"Bang", "!"},
	} {
		b.test(t, "70000"+c.name, func(t *testing.T, sh *shell) {
			command, want := of(70_000, c.command)
			same(t, want, sh.output(command))
		})
	}
	b.test(t, "SingleQuotes", func(t *testing.T, sh *shell) {
		want := strings.Repeat("'", 20_000)
		same(t, want+"\n", sh.output(`printf '%s\n' "`+want+`"`))
	})
	// an implementation that sends it in pieces must not split a rune
	b.test(t, "Runes", func(t *testing.T, sh *shell) {
		for pad := range 3 {
			want := strings.Repeat("x", pad) + strings.Repeat("日本", 3000)
			same(t, want+"\n", sh.output("printf '%s\\n' '"+want+"'"))
		}
	})
}
