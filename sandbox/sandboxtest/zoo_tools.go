package sandboxtest

import (
	"fmt"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// zooTools are programs that read their standard input, the terminal.
var zooTools = []situation{
	{name: "cat", command: `cat`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "catDash", command: `cat /dev/null - /dev/null`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catStdin", command: `cat /dev/stdin`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catTTY", command: `cat /dev/tty`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catTerminal", needs: "tty", command: `cat "$(tty)"`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "ann\nann"},
	{name: "catPipes", command: `cat | cat | cat`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catRaw", command: `stty raw -echo; cat`, asks: sandbox.Keys},
	{name: "catCbreak", command: `stty -icanon min 1; dd bs=3 count=1 2>/dev/null; stty sane`,
		asks: sandbox.Keys, answer: "ann", says: "ann"},
	{name: "catNoEcho", command: `stty -echo; cat; stty echo`, asks: sandbox.Secret,
		answer: "ann\n\x04", says: "ann"},
	{name: "catEnv", command: `env -i PATH="$PATH" cat`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catNice", needs: "nice", command: `nice cat`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catTimeout", needs: "timeout", when: `timeout --foreground 5 true`,
		command: `timeout --foreground 30 cat`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "ann\nann"},
	{name: "catTimeoutJob", needs: "timeout", when: `timeout 5 true`, command: `timeout 30 cat`,
		asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "catSetsid", needs: "setsid", when: `setsid -w true`, command: `setsid -w cat`,
		asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "catToPipe", command: `cat | wc -c`, asks: sandbox.Line, answer: "ann\n\x04", says: "4"},
	{name: "catToFile", command: `cat >f`, asks: sandbox.Line, answer: "ann\n\x04",
		check: `grep ann f`},
	{name: "busyboxCat", needs: "busybox", command: `busybox cat`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "ann\nann"},
	{name: "head", command: `head -n 1`, asks: sandbox.Line, answer: "ann\n", says: "ann\nann"},
	{name: "tail", when: `tail --version`, command: `tail -n 1`, asks: sandbox.Line,
		answer: "bob\nann\n\x04", says: "ann\nann"},
	{name: "sort", command: `sort`, asks: sandbox.Line, answer: "bob\nann\n\x04",
		says: "ann\nann\nbob"},
	{name: "wc", command: `wc -l`, asks: sandbox.Line, answer: "ann\n\x04", says: "1"},
	{name: "tee", command: `tee f`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann",
		check: `grep ann f`},
	{name: "dd", command: `dd bs=100 count=1 2>/dev/null`, asks: sandbox.Line, answer: "ann\n",
		says: "ann\nann"},
	{name: "od", needs: "od", command: `od -c`, asks: sandbox.Line, answer: "ann\n\x04",
		says: `a   n   n  \n`},
	{name: "grep", command: `grep an`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "sed", command: `sed s/bob/ann/`, asks: sandbox.Line, answer: "bob\n\x04",
		says: "bob\nann"},
	{name: "awk", needs: "awk", command: `awk '{ print "got", $1 }'`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "got ann"},
	{name: "awkGetline", needs: "awk",
		command: `awk 'BEGIN { printf "name? "; getline x <"/dev/tty"; print "got", x }'`,
		asks:    sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "tr", command: `tr a-z A-Z`, asks: sandbox.Line, answer: "ann\n\x04", says: "ANN"},
	{name: "uniq", command: `uniq`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "rev", needs: "rev", command: `rev`, asks: sandbox.Line, answer: "nna\n\x04",
		says: "ann"},
	{name: "base64", when: `base64 --version`, command: `base64`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "YW5uCg=="},
	{name: "sha256sum", needs: "sha256sum", command: `sha256sum`, asks: sandbox.Line,
		answer: "\x04", says: "e3b0c442"},
	{name: "diff", needs: "diff", setup: `echo bob >f`, command: `diff -u - f`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "-ann", code: 1},
	{name: "xargs", command: `xargs echo got`, asks: sandbox.Line, answer: "ann\n\x04",
		says: "got ann"},
	{name: "jq", needs: "jq", command: `jq -r .x`, asks: sandbox.Line,
		answer: `{"x": "got ann"}` + "\n\x04", says: "\ngot ann"},
	{name: "m4", needs: "m4", command: `m4`, asks: sandbox.Line, answer: "got `ann'\n\x04",
		says: "got ann"},
	{name: "pv", needs: "pv", command: `pv -q`, asks: sandbox.Line, answer: "ann\n",
		then: sandbox.Line, says: "ann\nann"},
	{name: "gzip", needs: "gzip", command: `gzip -f | gzip -d`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "ann\nann"},
	{name: "git-hash-object", needs: "git", command: `git hash-object --stdin`, asks: sandbox.Line,
		answer: "ann\n\x04", says: "cbbd374"},
	{name: "make", needs: "make", setup: `printf 'all:\n\t@read x; echo "got $$x"\n' >Makefile`,
		command: `make`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "makeJobs", needs: "make",
		setup: `printf 'all: a b\na:\n\t@read x </dev/tty; echo "got $$x"\nb:\n\t@sleep 1\n' >Makefile`, command: `make -j2`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "find", needs: "find", setup: `: >f`, when: `find /dev/null -ok true {} \; </dev/null`,
		command: `find . -name f -ok echo got ann \;`, asks: sandbox.Line, answer: "y\n",
		says: "got ann"},
	{name: "strace", needs: "strace", when: `strace -o /dev/null true`,
		command: `strace -o log cat`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
}

// zooSystem are programs that wait by system calls that few programs use.
var zooSystem = []situation{
	{name: "Read32", plain: plain32, when: i386(read32) + ` && ./p </dev/null`, setup: i386(read32),
		command: `./p`, asks: sandbox.Line, answer: "ann\n", says: "ann\nann"},
	{name: "Poll32", plain: plain32, when: i386(read32) + ` && ./p </dev/null`,
		setup: i386(poll32 + read32), command: `./p`, asks: sandbox.Line, answer: "ann\n",
		says: "ann\nann"},
	{name: "Select32", plain: plain32, when: i386(read32) + ` && ./p </dev/null`,
		setup: i386(select32 + read32), command: `./p`, asks: sandbox.Line, answer: "ann\n",
		says: "ann\nann"},
}

// Machine code of 32-bit programs for Linux. read32 reads a line, writes it and exits. The others
// wait for input before it.
const (
	read32 = "81ec00010000 89e1 31db ba64000000 b803000000 cd80 89c2 bb01000000 b804000000 " +
		"cd80 31db b801000000 cd80"
	poll32   = "6a01 6a00 89e3 b901000000 baffffffff b8a8000000 cd80"
	select32 = "31c0 b920000000 50 e2fd c7042401000000 89e1 bb01000000 31d2 31f6 31ff b88e000000 " +
		"cd80"
)

// i386 returns a command that writes machine code as an executable, p.
func i386(code string) string {
	const at, headers = 0x08048000, 52 + 32
	code = strings.ReplaceAll(code, " ", "")
	size := headers + len(code)/2
	file := "7f454c46010101000000000000000000" + "0200" + "0300" + "01000000" +
		word32(at+headers) + word32(52) + word32(0) + word32(0) +
		"3400" + "2000" + "0100" + "0000" + "0000" + "0000" +
		word32(1) + word32(0) + word32(at) + word32(at) + word32(size) + word32(size) + word32(
		5) + word32(0x1000) + code
	var octal strings.Builder
	for i := 0; i < len(file); i += 2 {
		var b byte
		fmt.Sscanf(file[i:i+2], "%x", &b)
		fmt.Fprintf(&octal, `\%03o`, b)
	}
	return `printf '` + octal.String() + `' >p && chmod +x p`
}

// word32 returns a number as a little-endian word, in hexadecimal.
func word32(n int) string {
	return fmt.Sprintf("%02x%02x%02x%02x", byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}
