package procfs

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

func benchmarkLook(b *testing.B, command string) {
	s := startSession(b)
	s.run(command)
	s.until(func(l proc.Look) bool {
		return l.Reads == "" && len(Tree(s.pid)) > 1 && len(l.Waits) == 0
	})
	s.measure(b)
}

func (s *session) measure(b *testing.B) {
	var before, after unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &before)
	for b.Loop() {
		Look(s.pid)
	}
	unix.Getrusage(unix.RUSAGE_SELF, &after)
	used := time.Duration(
		after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
}

// BenchmarkLook looks at a shell that runs a sleep.
func BenchmarkLook(b *testing.B) { benchmarkLook(b, "sleep 1000") }

// BenchmarkLookAmong500 is BenchmarkLook on a machine with 500 other processes.
func BenchmarkLookAmong500(b *testing.B) {
	for range 500 {
		cmd := exec.Command("sleep", "1000")
		require.NoError(b, cmd.Start())
		b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	benchmarkLook(b, "sleep 1000")
}

// BenchmarkMarked looks for the processes of a shell.
func BenchmarkMarked(b *testing.B) {
	s := startSession(b)
	for b.Loop() {
		Marked("NOBODY_HAS_THIS=1")
	}
	s.run("exit")
}

// BenchmarkRule looks at commands that read the terminal, and at the same commands while they do
// not: what the rule costs is the difference.
func BenchmarkRule(b *testing.B) {
	need(b, python)
	const ready = "open('ready','w').close(); "
	const read, not = ready + "os.read(0,9)", ready + "os.read(os.pipe()[0],9)"
	threads := "for _ in range(20): thread(threading.Event().wait,3600)\n"
	loop := `keep=[socket.socketpair() for _ in range(4)]; fds+=[a for a,_ in keep]
l=socket.create_server(('127.0.0.1',0)); fds+=[l]
` + ready + `select.select(fds,[],[])`
	for _, c := range []struct{ name, reads, not string }{
		{"prompt", py(pump + read), py(pump + not)},
		{"20 threads", py(pump + threads + read), py(pump + threads + not)},
		{"event loop", py(pump + "fds=[0]\n" + loop), py(pump + "fds=[]\n" + loop)},
		{"pipeline", ">ready; cat | cat", ">ready; sleep 1000 | cat"},
	} {
		for name, command := range map[string]string{"reads": c.reads, "does not": c.not} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				s := startSession(b)
				s.run(command)
				s.until(func(l proc.Look) bool {
					_, err := os.Stat("/proc/" + strconv.Itoa(s.pid) + "/cwd/ready")
					return err == nil && !l.Runs && (len(l.Waits) == 1) == (name == "reads")
				})
				s.measure(b)
			})
		}
	}
}
