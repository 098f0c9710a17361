package localbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A generator makes random commands.
type generator struct {
	r     *rand.Rand
	depth int
	count int
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

// command returns some statements, one after the other.
func (g *generator) command() string {
	var b strings.Builder
	for range 1 + g.r.IntN(4) {
		b.WriteString(g.statement())
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), g.pick("", "\n"))
}

func (g *generator) name() string { return g.pick("a", "b", "c", "long_name") }

func (g *generator) file() string { return g.pick("f1", "f2", "'f 3'") }

func (g *generator) word() string {
	return g.pick("x", "two", `'single  q'`, `"double $a"`, `"$b"`, "${c:-unset}", "$((1 + 2))",
		`$(echo sub)`, `\*`, "{1..3}", "'é'", "~+", "a=b", `"$#"`, `""`, "f*", "$'t\\tb'", "${#a}",
		"${a%x}", "`echo back`")
}

func (g *generator) words() string {
	var ws []string
	for range 1 + g.r.IntN(3) {
		ws = append(ws, g.word())
	}
	return strings.Join(ws, " ")
}

// simple returns a simple command, which a pipeline can contain.
func (g *generator) simple() string {
	switch g.r.IntN(12) {
	case 0:
		return "echo " + g.words()
	case 1:
		return "printf '<%s>\\n' " + g.words()
	case 2:
		return g.name() + "=" + g.pick("1", "'two words'", "$(echo 3)", `"$a$b"`, "")
	case 3:
		return g.pick("true", "false", "(exit 7)", "test -e f1", "[ \"$a\" = 1 ]", "[[ $b == t* ]]",
			"((c > 1))", "! true", ":")
	case 4:
		return fmt.Sprintf("(exit %d)", g.r.IntN(256))
	case 5:
		return "echo " + g.word() + " " + g.pick(">", ">>", "2>/dev/null >") + " " + g.file()
	case 6:
		return g.pick("cat ", "wc -l < ", "sort ", "read -r a < ") + g.file() + " 2>/dev/null"
	case 7:
		return g.pick("nosuchcommand 2>/dev/null", "cd /nowhere 2>/dev/null",
			"ls /nowhere >/dev/null 2>&1", "sh -c 'exit 3'", "sh -c 'kill -9 $$'", "kill -0 $$")
	case 8:
		return g.pick("fn", "fn x y", "fn2") + " 2>/dev/null"
	case 9:
		return g.pick("set -- "+g.words(), "shift 2>/dev/null", "local x 2>/dev/null",
			"unset "+g.name(), "export "+g.name(), "umask 022", "IFS=:", "unset IFS")
	case 10:
		return g.pick("set -u", "set +u", "set -f", "set +f", "set -o pipefail", "set +o pipefail",
			"shopt -s nullglob", "shopt -u nullglob", "set -C", "set +C", "set +e")
	default:
		return g.pick("seq 1 3", "echo $?", "echo $-", "echo \"$@\"", "pwd | sed 's,.*/,,'",
			"echo err >&2", "printf 'no newline'", "type fn 2>/dev/null", "times >/dev/null",
			"jobs", "let c=c+1", "sleep 0.001")
	}
}

// statement returns a complete statement, which may contain others.
func (g *generator) statement() string {
	if g.depth > 2 {
		return g.simple()
	}
	g.depth++
	defer func() { g.depth-- }()
	g.count++
	switch g.r.IntN(16) {
	case 0:
		return "if " + g.simple() + "; then " + g.statement() + g.pick("",
			"\nelse "+g.statement()) + "\nfi"
	case 1:
		return "for " + g.name() + " in " + g.words() + "; do\n" + g.statement() + "\n" +
			g.pick("", "break\n", "continue\n") + "done"
	case 2:
		return fmt.Sprintf("i%d=0; while [ $i%d -lt 3 ]; do i%d=$((i%d + 1)); %s\ndone", g.count,
			g.count, g.count, g.count, g.statement())
	case 3:
		return "case " + g.word() + " in x|two) " + g.statement() + "\n;;\n*) " + g.statement() +
			"\n;;\nesac"
	case 4:
		body := g.simple()
		for strings.HasPrefix(body, "fn") { // endless recursion
			body = g.simple()
		}
		return g.pick("fn", "fn2") + "() { " + body + "; " +
			g.pick("", "return 3; ", "echo \"$1\"; ") + "}"
	case 5:
		// A space, because bash 5.2 corrupts its memory at eval 'a=$( (((1))
		// ) )'.
		return "( " + g.statement() + "\n)"
	case 6:
		return "{ " + g.statement() + "\n}" + g.pick("", " > f1", " 2>&1")
	case 7:
		// "echo err >&2 |" closes the pipe before it prints. So the pipe's reader could print
		// first.
		return strings.ReplaceAll(g.simple(), "echo err >&2", "{ echo err >&2; }") + " | " +
			g.pick("cat", "sort", "wc -l", "sed s/x/y/",
				"(read -r l; echo \"<$l>\"; cat >/dev/null)",
				"while read -r l; do echo \"[$l]\"; done")
	case 8:
		return g.simple() + g.pick(" && ", " || ", "; ") + g.simple()
	case 9:
		return "cat <<" + g.pick("END", "'END'", "-END", "\"END\"") +
			"\nline $a `echo x`\n\tit's \"q\"\nEND"
	case 10:
		return g.name() + "=$(" + g.statement() + "\n)"
	case 11:
		return "(trap 'echo trapped' " + g.pick("EXIT", "USR1", "TERM") +
			"; kill -USR1 $BASHPID 2>/dev/null; " + g.statement() + "\n)"
	case 12:
		return g.pick("mkdir -p d; cd d; cd ..", "cd .", "pushd / >/dev/null; popd >/dev/null",
			"(cd /; pwd)", "trap 'echo usr' USR1; kill -USR1 $BASHPID", "trap - USR1")
	case 13:
		return "arr=(" + g.words() + "); echo \"${#arr[@]} ${arr[0]}\""
	default:
		return g.simple()
	}
}

// times returns how often a random test tries: few times in make test, full times in make nightly.
func times(few, full int) int {
	if testenv.Full() {
		return full
	}
	return few
}

// seeded returns random numbers and their seed. SANDSHELL_TEST_SEED sets the seed.
func seeded() (r *rand.Rand, seed uint64) {
	seed, err := strconv.ParseUint(os.Getenv("SANDSHELL_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, 0)), seed
}
