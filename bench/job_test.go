//go:build linux

package bench

import (
	"fmt"
	"testing"
)

// BenchmarkJob is a Background job that prints 100 MB, to its end, beside the same command on a
// terminal that is read bare. A job has a shell of its own, and its output goes to a file here;
// with boxd, to another one in the box too.
func BenchmarkJob(b *testing.B) {
	places(b, func(b *testing.B, at place) {
		const times = 10
		box := open(b, at)
		command := newPrinter(b, box).command(times)
		noError(b, at.run(prepare(printed+"-bare"), nil, nil))
		b.Cleanup(func() { at.run("rm -f "+printed+"-bare", nil, nil) })
		line := []byte((&printer{file: printed + "-bare"}).command(times) +
			`; printf '\033]%s\a' done` + "\n")
		comparison{
			floor: func() {
				s, err := at.terminal()
				noError(b, err)
				defer s.Close()
				shell := &bareShell{stream: s, t: b, buf: make([]byte, 32<<10)}
				shell.typeLine(line)
				shell.until([]byte("\x1b]done"), times*10e6)
			},
			ours: func() {
				j, err := box.Background(b.Context(), command)
				noError(b, err)
				r, err := j.Wait(b.Context())
				noError(b, err)
				if n := int64(len(r.Output)) + r.Omitted; r.ExitCode != 0 || n != times*10e6 {
					b.Fatalf("status %d, %d bytes", r.ExitCode, n)
				}
			},
			rounds: 5, bytes: times * 10e6,
		}.run(b)
	})
}

// BenchmarkSessions is what a box costs to have one more session, or job, beside one more bare
// terminal and its shell's first prompt.
func BenchmarkSessions(b *testing.B) {
	places(b, func(b *testing.B, at place) {
		box := open(b, at)
		n := 0
		comparison{
			floor: func() {
				s, err := at.terminal()
				noError(b, err)
				defer s.Close()
				n++
				shell := &bareShell{stream: s, t: b, buf: make([]byte, 32<<10)}
				shell.typeLine(fmt.Appendf(nil, `printf '\033]%%s\a' ready-%d`+"\n", n))
				shell.until(fmt.Appendf(nil, "\x1b]ready-%d", n), 0)
			},
			ours: func() {
				s, err := box.Open(b.Context())
				noError(b, err)
				execute(b, s, "echo ready")
				noError(b, s.Close())
			},
			rounds: 20,
		}.run(b)
	})
}
