//go:build linux

package bench

import (
	"fmt"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// A printer prints files that it has prepared.
type printer struct {
	t    testing.TB
	file string
	box  sandbox.Sandbox
}

const printed = "/tmp/sandshell-bench-10mb"

// newPrinter prepares 10 MB of lines of 80 bytes, on the machine of the box.
func newPrinter(t testing.TB, box sandbox.Sandbox) *printer {
	p := &printer{t, printed, box}
	execute(t, box, prepare(p.file))
	t.Cleanup(func() { execute(t, box, "rm -f "+p.file) })
	return p
}

func prepare(file string) string {
	return fmt.Sprintf(`yes '%079d' | head -c 10000000 >%s`, 1234567890, file)
}

// command prints the file so many times, with one cat.
func (p *printer) command(times int) string {
	command := "cat"
	for range times {
		command += " " + p.file
	}
	return command
}

func (p *printer) print(times int) {
	r := execute(p.t, p.box, p.command(times))
	if n := int64(len(r.Output)) + r.Omitted; n != int64(times)*10e6 {
		p.t.Fatalf("%d bytes of %d0 MB", n, times)
	}
}

// BenchmarkOutput executes a command that prints much. The floor reads a terminal that shows the
// same.
func BenchmarkOutput(b *testing.B) {
	for _, times := range []int{1, 10} {
		b.Run(fmt.Sprintf("%d0MB", times), func(b *testing.B) {
			places(b, func(b *testing.B, at place) {
				p := newPrinter(b, open(b, at))
				shell := bare(b, at)
				shell.typeLine([]byte(prepare(printed+"-bare") + `; printf '\033]%s\a' ready` +
					"\n"))
				shell.until([]byte("\x1b]ready"), 0)
				b.Cleanup(func() { at.run("rm -f "+printed+"-bare", nil, nil) })
				line := []byte((&printer{file: printed + "-bare"}).command(times) +
					`; printf '\033]%s\a' done` + "\n")
				comparison{
					floor: func() {
						shell.typeLine(line)
						shell.until([]byte("\x1b]done"), times*10e6)
					},
					ours:   func() { p.print(times) },
					rounds: 5, bytes: times * 10e6, maxRatio: 1.2,
				}.run(b)
			})
		})
	}
}

// BenchmarkLinear prints 100 MB. The floor prints 10 MB.
func BenchmarkLinear(b *testing.B) {
	places(b, func(b *testing.B, at place) {
		p := newPrinter(b, open(b, at))
		comparison{
			floor:  func() { p.print(1) },
			ours:   func() { p.print(10) },
			rounds: 3, maxRatio: 11,
		}.run(b)
	})
}
