//go:build linux

package comparison

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tmux types into a tmux in the container, and looks at what it shows, as agents do: tmux wait-for
// tells a command's end, which the typed line has it signal.
type tmux struct {
	dockerExec
	shown   int  // lines before the current command
	working bool // the last command has not ended
}

func startTmux(t *testing.T, image string) way {
	cutAll := engineProxy(t)
	id := startContainer(t, image)
	if exec.Command("docker", "exec", id, "tmux", "-V").Run() != nil {
		return nil
	}
	return newTmux(t, id, cutAll)
}

func newTmux(t *testing.T, container string, cutAll func()) *tmux {
	x := &tmux{dockerExec: dockerExec{container, cutAll}}
	x.tmux(t, "start-server", ";", "set-option", "-g", "history-limit", "50000", ";",
		"new-session", "-d", "-x", "200", "-y", "50", "bash --norc")
	return x
}

func (x *tmux) tmux(t *testing.T, args ...string) string {
	return docker(t, append([]string{"exec", x.container, "tmux"}, args...)...)
}

// screen returns the lines of the history and the screen.
func (x *tmux) screen() []string {
	out, _ := exec.Command("docker", "exec", x.container, "tmux", "capture-pane", "-p", "-J", "-S",
		"-").Output()
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

var tmuxStatus = regexp.MustCompile(`\[status (\d+)\]$`)

func (x *tmux) run(t *testing.T, command string, limit time.Duration) reply {
	if x.working {
		x.tmux(t, "send-keys", "C-c")
		time.Sleep(100 * time.Millisecond)
	}
	x.shown = len(x.screen())
	return x.wait(t, command+`; echo "[status $?]"; tmux wait-for -S done`, limit)
}

// wait types a line, and waits for the end of the command.
func (x *tmux) wait(t *testing.T, line string, limit time.Duration) reply {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	wait := exec.CommandContext(ctx, "docker", "exec", x.container, "tmux", "wait-for", "done")
	wait.WaitDelay = time.Second
	require.NoError(t, wait.Start())
	x.tmux(t, "send-keys", "-l", line)
	x.tmux(t, "send-keys", "Enter")
	err := wait.Wait()
	r := reply{state: ended, status: -1, took: time.Since(begin)}
	if ctx.Err() != nil {
		r.state = working
		x.tmux(t, "wait-for", "-S", "done") // for the waiter that is left
	} else if err != nil {
		r.state = lost // cut
	}
	x.working = r.state == working
	lines := x.screen()
	lines = lines[min(x.shown, len(lines)):]
	for i, l := range lines {
		if m := tmuxStatus.FindStringSubmatch(l); m != nil && r.state == ended {
			r.status, _ = strconv.Atoi(m[1])
			lines[i] = strings.TrimSuffix(l, m[0])
			lines = lines[:i+1]
			break
		}
	}
	r.output = strings.Join(lines, "\n")
	return r
}

func (x *tmux) answer(t *testing.T, line string, limit time.Duration) reply {
	return x.wait(t, line, limit)
}

func (x *tmux) forgery() string {
	return "sh -c 'echo \"[status 0]\"; tmux wait-for -S done; sleep 1; exit 7'"
}

// flood counts what tmux has kept.
func (x *tmux) flood(t *testing.T, command string) int64 {
	r := x.run(t, command, time.Minute)
	return int64(len(r.output))
}

func (x *tmux) fork(t *testing.T) way {
	return newTmux(t, startContainer(t, commit(t, x.container)), nil)
}
