package sandboxtest

import "github.com/sandshell/sandshell/sandbox"

// In the rows, name? is the question, ann the answer, and "got ann" what becomes of it.

const got = `; echo "got $x"`

// zooShells: what shells ask with, in the session's own and in others.
var zooShells = []situation{
	{name: "Read", command: `read -r x` + got, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadInFunction", command: `f() { printf 'name? '; read -r x; }; f` + got, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "ReadSubstituted", command: `x=$(read -r y; echo "$y")` + got, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadInSubshell", command: `(read -r x` + got + `)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadInPipeline", command: `(read -r x` + got + `) | cat`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadTerminalByName", command: `read -r x </dev/tty` + got, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadAtFarEndOfPipe", command: `echo in | (read -r y; read -r x </dev/tty` + got + `)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadDescriptor", command: `(exec 5</dev/tty; read -r x <&5` + got + `)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadLoop", command: `while read -r x; do echo "got $x"; done; (exit 4)`, asks: sandbox.Line, answer: "ann\nbob\n\x04", says: "got bob", code: 4},
	{name: "ReadAgain", command: `read -r x; printf 'more? '; read -r y`, asks: sandbox.Line, answer: "ann\n", then: sandbox.Line, says: "more? "},
	{name: "ReadAfterWork", command: `printf 'name? '; sleep 1.5; printf 'now? '; read -r x` + got, asks: sandbox.Line, shows: "name? now? ", answer: "ann\n", says: "got ann"},
	{name: "ReadWithTrap", command: `(trap 'echo no' INT; trap 'echo bye' EXIT; read -r x` + got + `)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadBesideJob", command: `(sleep 30 & read -r x` + got + `; kill $!)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "ReadEcho", command: `printf 'password: '; stty -echo; read -r x; stty echo` + got, asks: sandbox.Secret, shows: "password: ", answer: "ann\n", says: "got ann"},
	{name: "ReadRaw", command: `stty raw -echo; x=$(dd bs=1 count=1 2>/dev/null); stty sane` + got, asks: sandbox.Keys, answer: "y", says: "got y"},
	{name: "ReadScript", setup: `printf 'printf "name? "\nread x\necho "got $x"\n' >ask`, command: `sh ask`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "ReadSourced", setup: `printf 'printf "name? "\nread x\necho "got $x"\n' >ask`, command: `. ./ask`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "ReadTooMuch", command: `read -r x` + got, asks: sandbox.Line, answer: "ann\ntouch proof\n", says: "got ann", check: `[ ! -e proof ]`},
	{name: "ReadStopped", command: `cat`, asks: sandbox.Line, answer: "\x1a", code: 148, check: `kill -9 %1; kill -CONT %1 2>/dev/null; wait; :`}, // bash's wait waits for no stopped job, but for one that kill has continued
	{name: "Foreground", command: `cat & sleep 0.3; fg`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann"},
	{name: "Eval", command: `eval 'eval "read -r x"'` + got, asks: sandbox.Line, answer: "ann\n", says: "got ann"},

	{name: "BashReadP", bash: true, command: `read -r -p 'name? ' x` + got, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "BashReadS", bash: true, command: `read -r -s -p 'password: ' x` + got, asks: sandbox.Secret, shows: "password: ", answer: "ann\n", says: "got ann"},
	{name: "BashReadN1", bash: true, command: `read -r -n1 -p 'sure? ' x` + got, asks: sandbox.Keys, shows: "sure? ", answer: "y", says: "got y"},
	{name: "BashReadN3", bash: true, command: `read -r -N 3 x` + got, asks: sandbox.Keys, answer: "ann", says: "got ann"},
	{name: "BashReadT", bash: true, command: `read -r -t 30 x` + got, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "BashReadTP", bash: true, command: `read -r -t 30 -p 'name? ' x` + got, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "BashReadTS", bash: true, command: `read -r -s -t 30 x` + got, asks: sandbox.Secret, answer: "ann\n", says: "got ann"},
	{name: "BashReadE", bash: true, command: `read -r -e -p 'name? ' x` + got, asks: sandbox.Keys, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "BashReadD", bash: true, command: `read -r -d : x` + got, asks: sandbox.Keys, answer: "ann:", says: "got ann"},
	{name: "BashReadU", bash: true, command: `exec 5</dev/tty; read -r -u 5 x` + got + `; exec 5<&-`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "BashReadArray", bash: true, command: `read -r -a x; echo "got ${x[1]}"`, asks: sandbox.Line, answer: "bob ann\n", says: "got ann"},
	{name: "BashMapfile", bash: true, command: `mapfile -t x; echo "got ${x[1]}"`, asks: sandbox.Line, answer: "bob\nann\n\x04", says: "got ann"},
	{name: "BashSelect", bash: true, command: `select x in bob ann; do break; done` + got, asks: sandbox.Line, shows: "2) ann", answer: "2\n", says: "got ann"},
	{name: "BashSelectWithPS3", bash: true, command: `PS3='which? '; select x in bob ann; do break; done` + got, asks: sandbox.Line, shows: "which? ", answer: "2\n", says: "got ann"},
	{name: "BashCoprocBeside", bash: true, command: `(coproc sleep 30; read -r x` + got + `; kill $COPROC_PID)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "BashLastpipe", bash: true, command: `(set +m; shopt -s lastpipe; echo | read -r x </dev/tty` + got + `)`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},

	{name: "BashC", needs: "bash", command: `bash -c 'read -r -p "name? " x` + got + `; exit 3'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann", code: 3},
	{name: "BashCT", needs: "bash", command: `bash -c 'read -t 30 x` + got + `'`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "BashCS", needs: "bash", command: `bash -c 'read -s x` + got + `'`, asks: sandbox.Secret, answer: "ann\n", says: "got ann"},
	{name: "DashC", needs: "dash", command: `dash -c 'printf "name? "; read -r x` + got + `'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "BusyboxC", needs: "busybox", command: `busybox sh -c 'read -r -p "name? " x` + got + `'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "BusyboxCS", needs: "busybox", command: `busybox sh -c 'read -s x` + got + `'`, asks: sandbox.Secret, answer: "ann\n", says: "got ann"},
	{name: "BusyboxCT", needs: "busybox", command: `busybox sh -c 'read -t 30 x` + got + `'`, asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "BusyboxCN1", needs: "busybox", command: `busybox sh -c 'read -n 1 x` + got + `'`, asks: sandbox.Keys, answer: "y", says: "got y"},
	{name: "MkshC", needs: "mksh", command: `mksh -c 'read x?"name? "` + got + `'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "ZshC", needs: "zsh", command: `zsh -f -c 'read "x?name? "` + got + `'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "ZshCS", needs: "zsh", command: `zsh -f -c 'read -s x` + got + `'`, asks: sandbox.Secret, answer: "ann\n", says: "got ann"},
	{name: "ZshCK", needs: "zsh", command: `zsh -f -c 'read -k 1 x` + got + `'`, asks: sandbox.Keys, answer: "y", says: "got y"},
	{name: "ZshVared", needs: "zsh", command: `zsh -f -c 'x=; vared -p "name? " x` + got + `'`, asks: sandbox.Keys, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "KshC", needs: "ksh", command: `ksh -c 'read x?"name? "` + got + `'`, asks: sandbox.Line, or: sandbox.Keys, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "FishC", needs: "fish", command: `fish -N -c 'read x; echo "got $x"'`, asks: sandbox.Keys, or: sandbox.Line, answer: "ann\r", says: "got ann"},
	{name: "Nested", needs: "bash dash", command: `bash -c 'dash -c "sh -c \"read x; echo got \\\$x\""; exit 5'`, asks: sandbox.Line, answer: "ann\n", says: "got ann", code: 5},

	{name: "Sh", command: `sh -i`, asks: sandbox.Line, or: sandbox.Keys, answer: "exit 3\n", code: 3},
	{name: "Bash", needs: "bash", command: `bash --norc`, asks: sandbox.Keys, answer: "exit 3\n", code: 3},
	{name: "BashNoEditing", needs: "bash", command: `bash --norc --noediting`, asks: sandbox.Line, answer: "echo got ann\n", then: sandbox.Line, says: "got ann"},
	{name: "Dash", needs: "dash", command: `dash`, asks: sandbox.Line, answer: "exit 3\n", code: 3},
	{name: "BusyboxAsh", needs: "busybox", command: `busybox ash`, asks: sandbox.Keys, or: sandbox.Line, answer: "exit 3\n", code: 3},
	{name: "Mksh", needs: "mksh", command: `mksh`, asks: sandbox.Keys, answer: "exit 3\n", code: 3},
	{name: "Zsh", needs: "zsh", command: `zsh -f`, asks: sandbox.Keys, answer: "exit 3\n", code: 3},
	{name: "Ksh", needs: "ksh", command: `ksh -o emacs`, asks: sandbox.Keys, or: sandbox.Line, answer: "exit 3\n", code: 3},
	{name: "Fish", needs: "fish", command: `fish -N`, asks: sandbox.Keys, answer: "exit 3\r", code: 3},

	// A program in the shell's place is the command itself: it is given none of the session's lines.
	{name: "ExecBash", needs: "bash", command: `exec bash -c 'read -p "name? " x` + got + `; exit 3'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann", code: 3, restarts: true},
	{name: "ExecScript", needs: "bash", setup: `printf 'read x\necho "got $x"\n' >ask`, command: `exec bash ask`, asks: sandbox.Line, answer: "ann\n", says: "got ann", restarts: true},
	{name: "ExecCat", command: `exec cat`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann", restarts: true},
	{name: "ExecBusyboxCat", needs: "busybox", command: `exec busybox cat`, asks: sandbox.Line, answer: "ann\n\x04", says: "ann\nann", restarts: true},
	{name: "ExecPython", needs: "python3", command: `exec python3 -c 'print("got", input("name? "))'`, asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann", restarts: true},
}
