//go:build linux

package bench

import (
	"fmt"
	"io"
	"testing"
)

// BenchmarkJob runs a job that prints 100 MB. The floor reads the same command's terminal. A job
// has its own shell, and its output goes to a file here and, with boxd, to a file in the box.
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

// BenchmarkSessions opens a session, to the result of its first command. The floor starts a shell
// on a terminal, to the same.
func BenchmarkSessions(b *testing.B) {
	places(b, func(b *testing.B, at place) {
		box := open(b, at)
		n := 0
		var last io.Closer // is closed outside the measurement
		end := func() {
			if last != nil {
				noError(b, last.Close())
			}
			last = nil
		}
		defer end()
		comparison{
			before: end,
			floor: func() {
				s, err := at.terminal()
				noError(b, err)
				last = s
				n++
				shell := &bareShell{stream: s, t: b, buf: make([]byte, 32<<10)}
				shell.typeLine(fmt.Appendf(nil, `printf '\033]%%s\a' ready-%d`+"\n", n))
				shell.until(fmt.Appendf(nil, "\x1b]ready-%d", n), 0)
			},
			ours: func() {
				s, err := box.Open(b.Context())
				noError(b, err)
				last = s
				execute(b, s, "echo ready")
			},
			rounds: 20,
		}.run(b)
	})
}
