package pytool_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
)

// TestNasty checks functions that misuse their descriptors and processes. The result is what the
// function returns, or the call fails.
func TestNasty(t *testing.T) {
	t.Parallel()
	const daemon = `
import os, subprocess, time
def daemon():
  if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(1, b"daemon\n")
    os.execvp("env", ["env", "-i", "sleep", "SECONDS"])
  os.wait()
`
	each(t, func(t *testing.T, b boxtest.Box) {
		seconds := ownSeconds()
		for _, c := range []struct {
			name, source   string
			value          string // or the error
			stdout, stderr string
		}{
			{"Apart", "import sys, os\ndef f():\n  print('out'); print('err', file=sys.stderr); " +
				"os.system('echo sub; echo suberr >&2')\n  return 1", `1`, "out\nsub\n",
				"err\nsuberr\n"},
			{"ImitatesFrames", "import os\ndef f():\n  for fd in 1, 2: os.write(fd, " +
				"b'r\\0\\0\\0\\x0c{\"value\": 9}x\\0\\0\\0\\x010')\n  return 1", `1`,
				"r\x00\x00\x00\x0c{\"value\": 9}x\x00\x00\x00\x010",
				"r\x00\x00\x00\x0c{\"value\": 9}x\x00\x00\x00\x010"},
			{"WritesToAll", "import os\ndef f():\n  for fd in range(3, 40):\n    try: " +
				"os.write(fd, b'{\"value\": 9}')\n    except OSError: pass\n  return 1", `1`, "",
				""},
			{"ClosesOutput", "import os\ndef f():\n  os.close(1); os.close(2)\n  return 1", `1`, "",
				""},
			{"ClosesStdout", "import sys\ndef f():\n  sys.stdout.close(); sys.stderr.close()\n  " +
				"return 1", `1`, "", ""},
			{"BrokenUTF8", "import os\ndef f():\n  os.write(1, b'\\xff\\xc3'); print('\\udc80'); " +
				"return 1", `1`, "\uFFFD\\udc80\n", ""},
			{"Exit", "import os\ndef f():\n  print('out'); os._exit(0)",
				"exit status 0 before it had a result", "out\n", ""},
			{"Exit7", "import os\ndef f(): os._exit(7)",
				"exit status 7 before it had a result", "", ""},
			{"KillsGroup", "import os\ndef f():\n  print('out'); os.killpg(0, 9)",
				"signal 9 (killed; out of memory?) before it had a result", "out\n", ""},
			{"Signal", "import os\ndef f(): os.kill(os.getpid(), 15)", "signal 15 (terminated)", "",
				""},
			{"KillsParent", "import os, time\ndef f():\n  os.kill(os.getppid(), 9)\n  " +
				"time.sleep(.1)", "signal 9", "", ""},
			{"AtExit", "import atexit, os\natexit.register(lambda: (print('bye'), " +
				"os.abort()))\ndef f(): return 1", `1`, "bye\n", ""},
			{"Daemon", daemon + "def f():\n  daemon()\n  return 1", `1`, "", ""},
			{"Background", "import subprocess\ndef f():\n  subprocess.Popen(['sh', '-c', 'yes " +
				"SECONDS & sleep SECONDS'])\n  return 1", `1`, "", ""},
			{"Limit", "import resource\ndef f():\n  resource.setrlimit(resource.RLIMIT_AS, (1 << " +
				"28, 1 << 28))\n  return len('x' * (1 << 30))", "MemoryError", "", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				began := time.Now()
				res, err := call(t, b, strings.ReplaceAll(c.source, "SECONDS", seconds),
					pytool.Call{Timeout: 2 * testenv.Limit})
				require.Less(t, time.Since(began), testenv.Limit)
				if json.Valid([]byte(c.value)) {
					require.NoError(t, err)
					require.Equal(t, c.value, string(res.Value))
				} else {
					require.ErrorContains(t, err, c.value)
					require.Nil(t, res.Value)
					var exit *pytool.ExitError
					require.Equal(t, c.name != "Limit", errors.As(err, &exit))
				}
				switch c.name {
				case "Daemon":
					require.Contains(t, []string{"", "daemon\n"}, res.Stdout)
				case "Background":
				default:
					require.Equal(t, []string{c.stdout, c.stderr}, []string{res.Stdout, res.Stderr})
				}
			})
		}
		_, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
			"kill $(pgrep -f '^(yes|sleep) " + seconds + "')"}})
		require.NoError(t, err)
	})
}

// A timeout and the end of ctx kill every process that the call has started, even if it resists.
func TestKilled(t *testing.T) {
	t.Parallel()
	const template = `
import os, signal, subprocess, sys, time
def f():
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; sleep SECONDS"])
  subprocess.Popen(["setsid", "sleep", "SECONDS"])
  if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.execvp("env", ["env", "-i", "sleep", "SECONDS"])
  os.wait()
  while subprocess.run(["pgrep", "-cf", "^sleep SECONDS"], capture_output=True, text=True).stdout != "3\n": pass
  print("ready")
  print("err", file=sys.stderr)
  while True: time.sleep(1)
`
	each(t, func(t *testing.T, b boxtest.Box) {
		seconds := ownSeconds()
		source := strings.ReplaceAll(template, "SECONDS", seconds)
		gone := func() {
			code, err := b.Run(t.Context(), &sandbox.Cmd{
				Args: []string{"pgrep", "-f", "^sleep " + seconds}})
			require.NoError(t, err)
			require.Equal(t, 1, code, "none is left")
		}
		res, err := call(t, b, source, pytool.Call{Timeout: 3 * time.Second})
		require.ErrorIs(t, err, sandbox.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "call f: not done after 3s")
		require.Equal(t, []string{"ready\n", "err\n"}, []string{res.Stdout, res.Stderr})
		require.Nil(t, res.Value)
		gone()

		ctx, cancel := context.WithCancel(t.Context())
		res, err = (&pytool.Tool{Source: source, Function: "f"}).Call(ctx, b,
			pytool.Call{Stdout: writerFunc(func(p []byte) (int, error) {
				cancel()
				return len(p), nil
			})})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "ready\n", res.Stdout)
		gone()
		require.EqualValues(t, 1, value(t, b, "def f(): return 1", nil))
	})
}

// ownSeconds returns a number of seconds that marks the sleep processes of one test. This machine
// also shows the processes of containers.
func ownSeconds() string { return strconv.Itoa(900_000_000 + rand.IntN(99_000_000)) }
