//go:build linux || darwin

package programs_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A desk is a terminal with a program, and all that it has shown.
type desk struct {
	master *os.File

	mu    sync.Mutex
	shown bytes.Buffer
}

// sit starts a script on a terminal.
func sit(t *testing.T, script string) *desk {
	cmd, err := programs.Command([]string{"sh", "-c", script}, "", os.Environ())
	require.NoError(t, err)
	master, end, err := programs.OpenTerminal(24, 80)
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = end, end, end
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	end.Close()
	d := &desk{master: master}
	var read sync.WaitGroup
	read.Go(func() { io.Copy(d, struct{ io.Reader }{master}) })
	t.Cleanup(func() {
		master.Close()
		cmd.Wait()
		read.Wait()
	})
	return d
}

// Write records what the terminal shows. It is slow, so that the terminal's output fills up.
func (d *desk) Write(p []byte) (int, error) {
	time.Sleep(5 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown.Write(p)
}

func (d *desk) total() int64 { return int64(len(d.text())) }

func (d *desk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown.String()
}

func (d *desk) shows(t *testing.T, text string) {
	t.Helper()
	require.Eventuallyf(t, func() bool {
		return strings.Contains(d.text(), text)
	}, testenv.Limit, time.Millisecond, "the terminal shows %d bytes", d.total())
}

// keyboard returns a Keyboard. If asks is set, the Keyboard can ask the terminal. Otherwise it sees
// only the output, as over a connection.
func (d *desk) keyboard(asks bool) *programs.Keyboard {
	if asks {
		return programs.NewKeyboard(d.master, d.total)
	}
	return programs.NewKeyboard(struct{ io.Writer }{d.master}, d.total)
}

func eachKeyboard(t *testing.T, test func(t *testing.T, asks bool)) {
	t.Run("Asks", func(t *testing.T) { test(t, true) })
	t.Run("GoesByOutput", func(t *testing.T) { test(t, false) })
}

// TestKeyboardKeepsTheEcho checks that the echo of a long input is complete, and comes before the
// output that the program prints at its end.
func TestKeyboardKeepsTheEcho(t *testing.T) {
	text := strings.Repeat("what is typed is echoed, each line of it\n", 2000)
	eachKeyboard(t, func(t *testing.T, asks bool) {
		d := sit(t, "echo up; cat >/dev/null; echo over")
		d.shows(t, "up\n")
		_, err := io.WriteString(d.keyboard(asks), text+"\x04")
		require.NoError(t, err)
		d.shows(t, "over\n")
		require.True(t, d.text() == "up\n"+text+"over\n", "the echo is not what was typed")
	})
}

// TestKeyboardWithoutEcho checks that a Keyboard hardly waits if there is no echo. With a wait of
// 20 ms for each KiB, the test would take 40 s.
func TestKeyboardWithoutEcho(t *testing.T) {
	const size = 2 << 20
	eachKeyboard(t, func(t *testing.T, asks bool) {
		d := sit(t, fmt.Sprintf("stty raw -echo; echo up; head -c %d | wc -c", size))
		d.shows(t, "up\n")
		began := time.Now()
		_, err := d.keyboard(asks).Write(make([]byte, size))
		require.NoError(t, err)
		d.shows(t, fmt.Sprint(size))
		require.Less(t, time.Since(began), 20*time.Second)
	})
}
