package inspect

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit bounds the wait for what is to happen at once.
const limit = 20 * time.Second

// A controlShell is the shell that Answer stands in for.
type controlShell struct {
	in  io.Writer
	out *bufio.Reader
}

// startControlShell starts sh with control.sh, as the user of that id if it is not 0.
func startControlShell(t testing.TB, uid uint32) *controlShell {
	t.Helper()
	script, err := os.ReadFile("../../sandbox/shellbox/control.sh")
	require.NoError(t, err)
	cmd := exec.Command("sh")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	c := &controlShell{in, bufio.NewReader(out)}
	require.Empty(t, c.ask(t, string(script)))
	return c
}

func (c *controlShell) ask(t testing.TB, request string) string {
	t.Helper()
	_, err := io.WriteString(c.in, request+"\necho =end=\n")
	require.NoError(t, err)
	var answer strings.Builder
	for {
		line, err := c.out.ReadString('\n')
		require.NoError(t, err)
		if line == "=end=\n" {
			return answer.String()
		}
		answer.WriteString(line)
	}
}

func ask(t testing.TB, request string) string {
	t.Helper()
	answer, err := Answer(request)
	require.NoError(t, err)
	return answer
}

// startShell starts bash on a terminal with a script, and returns its id and the terminal's other side.
func startShell(t testing.TB, script string, env ...string) (int, *os.File) {
	t.Helper()
	for _, program := range []string{"bash", "stty"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("this machine has no " + program)
		}
	}
	cmd := exec.Command("bash", "--noediting", "--norc", "-i")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	ptm, err := pty.Start(cmd)
	require.NoError(t, err)
	read := make(chan struct{})
	go func() { // or a program blocks in writing
		defer close(read)
		io.Copy(io.Discard, ptm)
	}()
	t.Cleanup(func() {
		for line := range strings.Lines(ask(t, "tree "+strconv.Itoa(cmd.Process.Pid))) {
			if f := strings.Fields(line); f[0] == "P" {
				ask(t, "send KILL "+f[1])
			}
		}
		cmd.Wait()
		<-read // no process has the terminal open any more
		ptm.Close()
	})
	_, err = io.WriteString(ptm, script+"\n")
	require.NoError(t, err)
	return cmd.Process.Pid, ptm
}

// working matches a process that is on its way.
var working = regexp.MustCompile(`(?m)^P \d+ [RD] `)

// settled returns the answer to a request when it matches all patterns and is the same twice.
func settled(t testing.TB, request string, patterns ...string) string {
	t.Helper()
	var last string
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(10 * time.Millisecond) {
		answer := ask(t, request)
		matches := answer == last && !working.MatchString(answer)
		for _, p := range patterns {
			matches = matches && regexp.MustCompile("(?m)"+p).MatchString(answer)
		}
		if matches {
			return answer
		}
		last = answer
	}
	t.Fatalf("%s does not come to match %q:\n%s", request, patterns, last)
	return ""
}

// Terminals with all that the engine asks about: readers of a terminal, sleepers, threads, a zombie, pipelines, odd names.
var liveTrees = []struct {
	name, script string
	patterns     []string
}{
	{"Prompt", ":", []string{`^T \d+ \d+ tty wait_woken 0 0x0 `}},
	{"Cat", // the child of the first sleep ends when that is no shell any more, which would reap it
		`sh -c 'sh -c "until grep -q sleep /proc/\$PPID/comm; do :; done" & exec sleep 1000' & sleep 1000 | sleep 1000 & cat`,
		[]string{` cat$`, `^T \d+ \d+ tty `, `^P \d+ Z .* 0 sh$`, `(?s)sleep\n.* sleep\n.* sleep\n`}},
	{"DevTTY", "cat </dev/tty", []string{` cat$`, `^T \d+ \d+ tty `}},
	{"NotTheTerminal", "mkfifo p; exec 3<>p; cat <p", []string{` cat$`, `^T \d+ \d+ - \S+ 0 `}},
	{"Pipeline", "sleep 1000 | (sleep 1000; true) | cat", []string{` cat$`, `(?s)sleep\n.* sleep\n`}},
	{"Threads", `python3 -c '
import threading, time, sys
for _ in range(12): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
sys.stdin.readline()'`, []string{`^T \d+ \d+ tty `, `(?s)(\nT [^\n]* -[^\n]*){12}`}},
	{"Background", "python3 -c 'import threading, time\nfor _ in range(3): threading.Thread(target=time.sleep, args=(1000,)).start()' & sleep 1000",
		[]string{` python3$`, ` sleep$`}},
	{"Names", `s=$(command -v sleep); n() { ln -s "$s" "$1"; ./"$1" 1000 & }; n 'a) S 1 1 ('; n $'x\ny'; n '\n'; n ' b  c '; n ')'; cat`,
		[]string{` cat$`, ` a\) S 1 1 \($`, ` x$`, ` \\n$`, `  b  c $`, ` \)$`}},
}

func TestTreeAsControlShell(t *testing.T) {
	sh := startControlShell(t, 0)
	for _, c := range liveTrees {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.script, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("this machine has no python3")
				}
			}
			pid, _ := startShell(t, c.script)
			request := fmt.Sprintf("tree %d", pid)
			var answer, theirs string
			for again := true; again; again = answer != ask(t, request) { // what changes meanwhile cannot be compared
				answer = settled(t, request, c.patterns...)
				theirs = sh.ask(t, request)
			}
			require.Equal(t, sorted(theirs), sorted(answer))

			processes := strings.Join(regexp.MustCompile(`(?m)^P (\d+)`).FindAllString(answer, -1), " ")
			pids := strings.ReplaceAll(processes, "P ", "")
			require.Equal(t, sh.ask(t, "alive "+pids), ask(t, "alive "+pids))
			require.Equal(t, sorted(answer), sorted(ask(t, "tree "+pids)), "each process is there once")
			require.Equal(t, sorted(answer), sorted(sh.ask(t, "tree "+pids)), "each process is there once")

			r := newReader()
			require.Equal(t, sorted(answer), sorted(r.tree([]int{pid}, r.parents())), "without /proc/PID/task/TID/children")
		})
	}
}

// sorted brings the processes and a process's threads in one order: the shell has that of the threads' names, and a kernel's list of
// children need not be that of their ids.
func sorted(answer string) string {
	var lines []string
	process := ""
	for line := range strings.Lines(answer) {
		if f := strings.Fields(line); f[0] == "P" {
			process = f[1]
		}
		lines = append(lines, process+" "+line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Another user's processes show what they show to the control shell of that user.
func TestTreeOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root becomes another user")
	}
	const nobody = 65534
	sh := startControlShell(t, nobody)
	pid, _ := startShell(t, "cat")
	request := fmt.Sprintf("tree %d", pid)
	settled(t, request, ` cat$`, `^T \d+ \d+ tty `)
	answers := make(chan string)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and with it the identity
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			answers <- errno.Error()
			return
		}
		answer, _ := Answer(request)
		answers <- answer
	}()
	answer := <-answers
	require.Equal(t, sh.ask(t, request), answer)
	require.Regexp(t, `(?m)^T \d+ \d+ \? \S+ $`, answer)
}

func TestNothingThere(t *testing.T) {
	sh := startControlShell(t, 0)
	for _, request := range []string{"tree", "tree 4194303", "alive", "alive 4194303", "marked NO_SUCH_MARK=" + "x",
		"modes 0", "modes 1088", "modes 287319", "sane 0", "send TERM", "send TERM 4194303", "send 0 4194303"} {
		require.Equal(t, sh.ask(t, request), ask(t, request), request)
	}
}

func TestBadRequests(t *testing.T) {
	for _, c := range []struct{ request, says string }{
		{"", `inspect "": it is empty`},
		{"  ", "it is empty"},
		{"kill -9 1", `inspect "kill -9 1": no request: "kill"`},
		{"tree x", `no process id: "x"`},
		{"tree 0", `no process id: "0"`},
		{"alive -1", `no process id: "-1"`},
		{"marked", "it has 0 words behind its name, want 1"},
		{"marked a b", "it has 2 words behind its name, want 1"},
		{"modes x", `no terminal's number: "x"`},
		{"sane -1", `no terminal's number: "-1"`},
		{"uptime now", "it has 1 words behind its name, want 0"},
		{"send", "it names no signals"},
		{"send KILL -1", `no process id: "-1"`},
		{"send KILL 0", `no process id: "0"`},
		{"send NONE 4194303", `no signal: "NONE"`},
		{"send , 4194303", `no signal: ""`},
		{"send -9 4194303", `no signal: "-9"`},
	} {
		answer, err := Answer(c.request)
		require.ErrorContains(t, err, c.says, c.request)
		require.Empty(t, answer)
	}
}

func TestMarked(t *testing.T) {
	sh := startControlShell(t, 0)
	mark := fmt.Sprintf("INSPECT_TEST=%d.%d.", os.Getpid(), time.Now().UnixNano())
	// The mark is in a big environment too, and in no command line.
	pid, _ := startShell(t, "sleep 1000 & (PADDING=$(printf %0100000d 0) exec sleep 1000) & sleep 1000", mark+"x")
	settled(t, fmt.Sprintf("tree %d", pid), `(?s)sleep\n.* sleep\n.* sleep\n`)
	words := func(s string) []string { return strings.Fields(s) }
	found := words(ask(t, "marked "+mark))
	require.Len(t, found, 4)
	require.ElementsMatch(t, words(sh.ask(t, "marked "+mark)), found)
	require.Equal(t, "\n", ask(t, "marked "+mark+"y"))
}

func TestModesAndSane(t *testing.T) {
	sh := startControlShell(t, 0)
	for _, prepare := range []string{"sane", "raw -echo", "-echo", "-icanon min 5 time 7", "-a",
		"cbreak -echo intr ^A erase ^H inlcr igncr olcuc ocrnl tostop noflsh -isig -icrnl -opost xcase echoprt echonl -brkint eol ^X swtch ^Y -ixon"} {
		t.Run(prepare, func(t *testing.T) {
			var modesAfter [2]unix.Termios
			for i, put := range []func(testing.TB, string) string{ask, func(_ testing.TB, r string) string { return sh.ask(t, r) }} {
				ptm, tty, err := pty.Open()
				require.NoError(t, err)
				defer ptm.Close()
				defer tty.Close()
				stty := exec.Command("stty", strings.Fields(prepare)...)
				stty.Stdin = tty
				out, err := stty.CombinedOutput()
				require.NoError(t, err, "%s", out)
				var st unix.Stat_t
				require.NoError(t, unix.Fstat(int(tty.Fd()), &st))
				major, minor := unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
				number := strconv.Itoa(int(major<<8 | minor&0xff | minor&^0xff<<12))
				of := func(answer string) (m [3]bool) {
					for _, word := range strings.Fields(answer) {
						m[0] = true
						m[1] = m[1] || word == "-icanon"
						m[2] = m[2] || word == "-echo"
					}
					return m
				}
				require.Equal(t, of(sh.ask(t, "modes "+number)), of(ask(t, "modes "+number)))
				require.Empty(t, put(t, "sane "+number))
				m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
				require.NoError(t, err)
				modesAfter[i] = *m
				require.Equal(t, "icanon echo\n", ask(t, "modes "+number))
			}
			require.Equal(t, modesAfter[1], modesAfter[0])
		})
	}
}

func TestUptime(t *testing.T) {
	sh := startControlShell(t, 0)
	seconds := func(s string) float64 {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		require.NoError(t, err)
		return f
	}
	before := seconds(ask(t, "uptime"))
	between := seconds(sh.ask(t, "uptime"))
	after := seconds(ask(t, "uptime"))
	if math.Abs(between-after) > 60 {
		t.Skip("/proc/uptime is another's here")
	}
	require.LessOrEqual(t, before, between+0.01)
	require.LessOrEqual(t, between, after+0.01)
}

// Each answers with a line for each signal, and these arrive.
func TestSend(t *testing.T) {
	sh := startControlShell(t, 0)
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(got)
	self := strconv.Itoa(os.Getpid())
	for _, put := range []func(testing.TB, string) string{ask, sh.ask} {
		require.Equal(t, "sent\nsent\n", put(t, fmt.Sprintf("send USR1,%d %s", syscall.SIGUSR2, self)))
		seen := map[os.Signal]bool{<-got: true, <-got: true}
		require.Equal(t, map[os.Signal]bool{syscall.SIGUSR1: true, syscall.SIGUSR2: true}, seen)
		require.Equal(t, "sent\nsent\n", put(t, fmt.Sprintf("send 0 %s 4194303 %s", self, self)))
	}
	require.Empty(t, sh.ask(t, "send KILL 0"))
	require.Empty(t, sh.ask(t, "send KILL -"+self))
	require.Equal(t, "sent\n", sh.ask(t, "send 0 "+self), "the shell's words are still split at blanks")
}

// Processes that come and go while they are looked at leave no half lines.
func TestVanishing(t *testing.T) {
	pid, ptm := startShell(t, "while :; do sleep 0 | sleep 0 | (sleep 0 & sleep 0); done")
	p := regexp.MustCompile(`^P \d+ \S \d+ (-1|\d+) (-1|\d+) \d+ (-1|\d+) \d+ \d+ [^\n]+\n$`) // -1: about to be gone
	th := regexp.MustCompile(`^T \d+ (\d+|-) (tty|-|\?) \S+ [^\n]*\n$`)
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; {
		for line := range strings.Lines(ask(t, fmt.Sprintf("tree %d", pid))) {
			require.True(t, p.MatchString(line) || th.MatchString(line), "%q", line)
		}
		for line := range strings.Lines(newReader().tree([]int{pid}, newReader().parents())) {
			require.True(t, p.MatchString(line) || th.MatchString(line), "%q", line)
		}
	}
	ptm.Write([]byte{3})
}

func TestParseStat(t *testing.T) {
	rest := " S 1 2 3 34816 -1 7 8 9 10 11 12 13 14 15 16 17 5 19 20 21 22 23 24 25"
	for _, name := range []string{"cat", "", ")", "a) S 1 (", " b  c ", "x\ny", `\`} {
		s, ok := parseStat([]byte("42 (" + name + ")" + rest + "\n"))
		require.True(t, ok)
		require.Equal(t, stat{comm: name, state: "S", ppid: "1", pgrp: "2", session: "3", tty: "34816", tpgid: "-1", threads: "5", start: "20", code: "24"}, s)
	}
	for _, line := range []string{"", "42", "42 (cat)", "42 (cat) S 1", ") (" + rest, "42 cat" + rest} {
		_, ok := parseStat([]byte(line))
		require.False(t, ok, line)
	}
}

// Whatever the file says, what comes out are words, which make one line.
func FuzzParseStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	require.NoError(f, err)
	f.Add(own)
	f.Add([]byte("42 (a) b (\\n\\\\) S 1 2 3 34816 -1 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := parseStat(line)
		if !ok {
			return
		}
		for _, word := range []string{s.state, s.ppid, s.pgrp, s.session, s.tty, s.tpgid, s.threads, s.start, s.code} {
			require.Len(t, strings.Fields(word), 1, "%q", word)
		}
		require.Contains(t, string(line), s.comm)
	})
}

func FuzzReadsFrom(f *testing.F) {
	f.Add("0 0x0 0x7f 0x20000 0x22 0x0 0x0 0x7ffc 0x7f60")
	f.Add("running")
	f.Add("-1 0x7ffc 0x7f60")
	f.Fuzz(func(t *testing.T, call string) {
		if fd, ok := readsFrom(call); ok {
			require.True(t, strings.HasPrefix(strings.TrimSpace(call), strconv.Itoa(unix.SYS_READ)), "%q is read(%d)", call, fd)
		}
	})
}

// A session's usual tree, a shell and a program that reads the terminal, asked by Answer and by the control shell that it stands in for.
func BenchmarkAnswer(b *testing.B) {
	pid, _ := startShell(b, "cat", "INSPECT_BENCH=1")
	tree := fmt.Sprintf("tree %d", pid)
	settled(b, tree, ` cat$`, `^T \d+ \d+ tty `)
	tty := regexp.MustCompile(`(?m)^P \d+ S \d+ \d+ \d+ (\d+)`).FindStringSubmatch(ask(b, tree))[1]
	for _, request := range []string{tree, fmt.Sprintf("alive %d", pid), "modes " + tty, "marked INSPECT_BENCH=1"} {
		name := strings.Fields(request)[0]
		b.Run(name+"/Answer", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask(b, request)
			}
		})
		b.Run(name+"/ControlShell", func(b *testing.B) {
			sh := startControlShell(b, 0)
			for b.Loop() {
				sh.ask(b, request)
			}
		})
	}
}
