package procfs

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// The tests of package control compare the answers with those of control.sh.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startShell starts bash on a terminal and types script. It returns the shell's id and the
// terminal's master.
func startShell(t testing.TB, script string) (int, *os.File) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this machine has no bash")
	}
	cmd := exec.Command("bash", "--noediting", "--norc", "-i")
	cmd.Dir = t.TempDir()
	ptm, err := pty.Start(cmd)
	require.NoError(t, err)
	read := make(chan struct{})
	go func() { // a program would block in writing to a terminal that nobody reads
		defer close(read)
		io.Copy(io.Discard, ptm)
	}()
	t.Cleanup(func() {
		for _, p := range Tree(cmd.Process.Pid) {
			Signal([]int{p.PID}, proc.SIGKILL)
		}
		cmd.Wait()
		<-read // the read ends when no process has the terminal open
		ptm.Close()
	})
	_, err = io.WriteString(ptm, script+"\n")
	require.NoError(t, err)
	return cmd.Process.Pid, ptm
}

// The tree is the same if the kernel does not list the children of a thread.
func TestTreeByParents(t *testing.T) {
	pid, _ := startShell(t, "sleep 1000 | (sleep 1000; true) & cat")
	require.Eventually(t, func() bool {
		ps := Tree(pid)
		return len(ps) == 5 && ps[1].State == "S"
	}, testenv.Limit, 10*time.Millisecond)
	r := newReader()
	require.Eventually(t, func() bool { // once all processes sleep
		ps := Tree(pid)
		for _, p := range ps {
			if p.State != "S" {
				return false
			}
		}
		require.ElementsMatch(t, ps, r.walk([]int{pid}, r.scanChildren()))
		return true
	}, testenv.Limit, 10*time.Millisecond)
}

// Each process is complete even if processes begin and end meanwhile.
func TestVanishing(t *testing.T) {
	pid, ptm := startShell(t, "while :; do sleep 0 | sleep 0 | (sleep 0 & sleep 0); done")
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; {
		for _, ps := range [][]proc.Process{Tree(pid),
			newReader().walk([]int{pid}, newReader().scanChildren())} {
			for _, p := range ps {
				require.Positive(t, p.PID)
				require.Positive(t, p.Start)
				require.Len(t, p.State, 1)
				require.NotEmpty(t, p.Name)
			}
		}
	}
	ptm.Write([]byte{3})
}

func TestNoSuchSignal(t *testing.T) {
	for _, sig := range []proc.Signal{"NONE", "", "-9", "SIGTERM", "term"} {
		sent, err := Signal([]int{os.Getpid()}, "0", sig)
		require.ErrorContains(t, err, "unknown signal")
		require.Zero(t, sent)
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 1 2 3 34816 -1 7 8 9 10 11 12 13 14 15 16 17 5 19 20 21 22 23 24 25"
	for _, name := range []string{"cat", "", ")", "a) S 1 (", " b  c ", "x\ny", `\`} {
		s, ok := parseStat([]byte("42 (" + name + ")" + rest + "\n"))
		require.True(t, ok)
		want := proc.Process{Name: name, State: "S", Parent: 1, Group: 2, Session: 3, TTY: 34816,
			Foreground: -1, Start: 20, Image: "24"}
		require.Equal(t, stat{Process: want, threadCount: 5}, s)
	}
	for _, line := range []string{"", "42", "42 (cat)", "42 (cat) S 1", ") (" + rest,
		"42 cat" + rest} {
		_, ok := parseStat([]byte(line))
		require.False(t, ok, line)
	}
}

// For any content of the file, the state is one word.
func FuzzParseStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	require.NoError(f, err)
	f.Add(own)
	f.Add([]byte("42 (a) b (\\n\\\\) S 1 2 3 34816 -1 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 " +
		"22 23 24"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := parseStat(line)
		if !ok {
			return
		}
		require.Len(t, strings.Fields(s.State), 1, "%q", s.State)
		require.Contains(t, string(line), s.Name)
	})
}

func TestParseCall(t *testing.T) {
	read := &sysCall{Number: unix.SYS_READ, Args: [6]uint64{3, 0x7ffc, 0x20000, 0x22}}
	for line, want := range map[string]*sysCall{
		"running":                nil,
		"-1 0x7ffc 0x7f60":       nil,
		"0 0x3 0x7ffc 0x20000":   nil,
		"0 x y z 0x22 0x0 0x0 1": nil,
		strconv.Itoa(unix.SYS_READ) + " 0x3 0x7ffc 0x20000 0x22 0x0 0x0 0x7ffc 0x7f60": read,
	} {
		require.Equal(t, want, parseCall(strings.Fields(line)), line)
	}
}

func FuzzParseCall(f *testing.F) {
	f.Add("0 0x0 0x7f 0x20000 0x22 0x0 0x0 0x7ffc 0x7f60")
	f.Add("running")
	f.Add("-1 0x7ffc 0x7f60")
	f.Fuzz(func(t *testing.T, line string) {
		if call := parseCall(strings.Fields(line)); call != nil && call.Number < 0 {
			t.Errorf("%q: %+v", line, call)
		}
	})
}
