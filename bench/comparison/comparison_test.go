//go:build linux

package comparison

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A way is one of the ways to have commands executed. Each is used as its own documents show it.
type way interface {
	// run executes a command, and waits at most for limit.
	run(t *testing.T, command string, limit time.Duration) reply

	// answer types a line for the command that the last run has left, and waits likewise.
	answer(t *testing.T, line string, limit time.Duration) reply

	// cut cuts the connection once, after a time, while a command runs.
	cut(after time.Duration)

	// forgery is a command that prints what this way takes for the end of a command with status 0,
	// as far as a program in the box can know it. A second later it ends with status 7.
	forgery() string

	// flood executes a command that prints 100 MB, and returns how many bytes have arrived.
	flood(t *testing.T, command string) int64

	// fork makes a copy of the box with its shell. It returns nil where there is no such thing.
	fork(t *testing.T) way
}

// A reply is what a way knows after its call.
type reply struct {
	output string
	status int // -1: it does not say
	state  state
	took   time.Duration
}

type state string

const (
	ended   state = "ended"   // the command is over, as far as the way knows
	asks    state = "asks"    // the way knows that the program asks
	working state = "working" // the limit has come
	lost    state = "lost"    // nothing can be known of the command any more
)

// A cell is what came of a situation.
type cell struct {
	right bool
	text  string
}

func right(format string, args ...any) cell { return cell{true, fmt.Sprintf(format, args...)} }
func wrong(format string, args ...any) cell { return cell{false, fmt.Sprintf(format, args...)} }

// A column is a way in the table.
type column struct {
	name  string
	ours  bool // what it does is checked
	image string
	start func(t *testing.T, image string) way // image is "" for a machine with an sshd
}

var columns = []column{
	{"sandshell, container", true, testImage, startSandshell},
	{"sandshell, sshd", true, "", startSandshell},
	{"docker exec", false, testImage, startDockerExec},
	{"tmux in the container", false, testImage, startTmux},
	{"pexpect over ssh", false, "", startPexpect},
}

const (
	testImage = "sandshell-test:latest"
	bareImage = "sandshell-shell:latest" // a shell, and nothing else
)

// TestComparison checks what sandshell does, and prints what all do.
func TestComparison(t *testing.T) {
	testenv.NeedsAll(t, "it waits for what others do not notice")
	dockertest.Engine(t, testImage, bareImage)
	table := make([][]string, len(situations))
	for i, s := range situations {
		table[i] = make([]string, len(columns))
		for k, c := range columns {
			table[i][k] = "–"
			if s.needsContainer && c.image == "" {
				continue
			}
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				got := s.try(t, c)
				if c.ours {
					require.True(t, got.right, got.text)
				}
				mark := map[bool]string{true: "✓ ", false: "✗ "}[got.right]
				table[i][k] = mark + got.text
			})
		}
	}
	var text strings.Builder
	text.WriteString("| |")
	for _, c := range columns {
		text.WriteString(" " + c.name + " |")
	}
	text.WriteString("\n|" + strings.Repeat("---|", len(columns)+1) + "\n")
	for i, s := range situations {
		fmt.Fprintf(&text, "| %s | %s |\n", s.name, strings.Join(table[i], " | "))
	}
	t.Log("\n" + text.String())
}

// server starts an sshd whose connections can be cut.
func server(t *testing.T) (*sshdtest.Server, *sshdtest.Proxy) {
	return sshdtest.Start(t).Through(t)
}
