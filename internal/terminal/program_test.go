//go:build unix

package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A program runs on a terminal of 24 × 80 without ONLCR, as a session's commands do.
type program struct {
	t       *testing.T
	tty     *os.File
	mu      sync.Mutex
	raw     []byte
	changed chan struct{} // receives a value after raw has grown
}

// start runs a shell script with arguments. It skips the test if one of the programs in needs is
// missing.
func start(t *testing.T, needs []string, script string, args ...string) *program {
	t.Helper()
	for _, name := range append(needs, "sh", "stty") {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	cmd := exec.Command("sh", append([]string{"-c", "stty -onlcr; " + script, "sh"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm",
		"LC_ALL=C.UTF-8"}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	p := &program{t: t, tty: tty, changed: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read()
	}()
	t.Cleanup(func() {
		// Kill the whole group: the terminal is in blocking mode, so Close does not end a Read.
		// Only the end of the last program on the terminal does.
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		tty.Close()
		<-read
	})
	return p
}

func (p *program) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.tty.Read(buf)
		p.mu.Lock()
		p.raw = append(p.raw, buf[:n]...)
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *program) output() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw[:len(p.raw):len(p.raw)]
}

func (p *program) keys(s string) {
	p.t.Helper()
	_, err := p.tty.WriteString(s)
	require.NoError(p.t, err)
}

// shows waits until the screen starts with these lines and the cursor is at row and col.
func (p *program) shows(row, col int, want ...string) {
	p.t.Helper()
	p.until(func(lines []string, r, c int) bool {
		for i, line := range want {
			if lines[i] != line {
				return false
			}
		}
		return r == row && c == col
	}, fmt.Sprintf("cursor at %d, %d, and\n%s", row, col, strings.Join(want, "\n")))
}

// until waits until ok returns true.
func (p *program) until(ok func(lines []string, row, col int) bool, want string) {
	p.t.Helper()
	timeout := time.After(testenv.Limit)
	for {
		lines, row, col := Render(p.output(), 24, 80)
		if ok(lines, row, col) {
			return
		}
		select {
		case <-p.changed:
		case <-timeout:
			p.t.Fatalf("the screen has the cursor at %d, %d, and\n%s\nwant %s\nraw %q",
				row, col, strings.Join(lines, "\n"), want, p.output())
		}
	}
}

// numbered writes a file of n lines. It returns the file's name and the lines.
func numbered(t *testing.T, n int) (name string, lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("%*sline %d", i%7, "", i+1))
	}
	name = filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return name, lines
}

func TestVim(t *testing.T) {
	name, lines := numbered(t, 100)
	p := start(t, []string{"vim"},
		`echo before; vim --cmd 'set scrolloff=0' -c 'set scrolloff=0' "$1"; echo after; cat`, name)
	p.shows(0, 0, lines[:23]...)

	p.keys("10\x05") // scrolls
	p.shows(0, 0, lines[10:33]...)
	p.keys("3\x19")
	p.shows(3, 0, lines[7:30]...)
	p.keys("50Gzt")
	p.shows(0, lead(lines[49]), lines[49:72]...)
	p.keys("jddk0")
	p.shows(0, lead(lines[49]), append([]string{lines[49]}, lines[51:73]...)...)
	p.keys("o漢字 żółw\x1b0i>\x1b")
	p.shows(1, 0, lines[49], ">漢字 żółw", lines[51], lines[52])
	p.keys("lx$")
	p.shows(1, 7, lines[49], ">字 żółw", lines[51], lines[52])

	p.keys(":w\rGo")
	p.keys(strings.Repeat("x", 100) + "\x1b")
	p.until(func(s []string, _, _ int) bool {
		return s[21] == strings.Repeat("x", 80) && s[22] == strings.Repeat("x", 20)
	}, "a wrapped line")

	p.keys(":q!\r")
	p.shows(2, 0, "before", "after", "")
}

// lead returns the number of spaces at the start of a line.
func lead(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func TestLess(t *testing.T) {
	name, lines := numbered(t, 100)
	p := start(t, []string{"less"}, `echo before; less "$1"; echo after; cat`, name)
	p.shows(23, len(name), append(lines[:23:23], name)...)
	p.keys(" ")
	p.shows(23, 1, append(lines[23:46:46], ":")...)
	p.keys("jj")
	p.shows(23, 1, append(lines[25:48:48], ":")...)
	p.keys("kkkk")
	p.shows(23, 1, append(lines[21:44:44], ":")...)
	p.keys("/line 70\n")
	p.shows(23, 1, append(lines[69:92:92], ":")...)
	p.keys("G")
	p.shows(23, 5, append(lines[77:100:100], "(END)")...)
	p.keys("q")
	p.shows(2, 0, "before", "after", "")
}

func TestTop(t *testing.T) {
	p := start(t, []string{"top"}, `echo before; top -d 1; echo after; cat`)
	header := -1
	drawn := func(lines []string, _, _ int) bool {
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "PID USER") {
				header = i
			}
		}
		// There is a process below the header, with all its columns.
		return strings.HasPrefix(lines[0], "top - ") && header > 0 &&
			strings.HasPrefix(lines[1], "Tasks:") && len(strings.Fields(lines[header+1])) >= 12
	}
	p.until(drawn, "top")
	p.keys(" ")
	p.until(func(lines []string, row, col int) bool {
		return bytes.Count(p.output(), []byte("top - ")) > 1 && drawn(lines, row, col)
	}, "top again")
	p.keys("q")
	p.until(func(lines []string, _, _ int) bool { return slices.Contains(lines, "after") }, "after")
	assert.NotContains(t, string(clean(p.output())), "\x1b")
}
