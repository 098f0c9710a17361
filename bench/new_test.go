//go:build linux

package bench

import (
	"context"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// BenchmarkNew makes a box, to the result of its first command. The floor creates and starts a
// container or pod and executes one command in it; elsewhere it is a bare shell's first result.
func BenchmarkNew(b *testing.B) {
	places(b, func(b *testing.B, p place) {
		var old func() // ends the last one, which is not measured
		cleanup := func() {
			if old != nil {
				old()
			}
			old = nil
		}
		defer cleanup()
		c := comparison{before: cleanup, rounds: 12, ours: func() {
			box, err := p.box(context.Background())
			noError(b, err)
			old = func() { noError(b, box.Close()) }
			execute(b, box, "echo ready")
		}}
		first := func(s stream, err error) *bareShell {
			noError(b, err)
			shell := &bareShell{stream: s, t: b, buf: make([]byte, 4096)}
			shell.typeLine([]byte(`printf '\033]%s\a' ready` + "\n"))
			shell.until([]byte("\x1b]ready"), 0)
			return shell
		}
		switch p := p.(type) {
		case local:
			c.floor = func() {
				shell := first(p.terminal())
				old = func() { shell.Close() }
			}
		case *sshd:
			c.floor = func() {
				conn, err := p.dial(context.Background())
				noError(b, err)
				old = func() { conn.Close() }
				first(sshTerminal(conn))
			}
		case *containers:
			c.maxMore = 60 * time.Millisecond
			c.floor = func() {
				id, remove, err := create(context.Background(), p.engine, "sleep", "infinity")
				noError(b, err)
				old = remove
				_, err = p.engine.ContainerStart(context.Background(), id,
					client.ContainerStartOptions{})
				noError(b, err)
				execOnce(b, p.engine, id)
			}
		case *pods:
			c.maxMore = 100 * time.Millisecond
			c.floor = func() { old = p.ready(b) }
		}
		c.run(b)
	})
}
