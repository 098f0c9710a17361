package sshhost

import (
	"io"
	"testing"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// benchmarkHost measures a Host. Its floor is x/crypto's own sessions on the same connection.
func benchmarkHost(b *testing.B, h *Host) {
	client := &ssh.Client{Conn: h.first().Client}
	b.Run("Start", func(b *testing.B) {
		for b.Loop() {
			p, err := h.Start(b.Context(), shellbox.Program{Args: []string{"true"}})
			noError(b, err)
			finish(p)
		}
	})
	b.Run("Start/floor", func(b *testing.B) {
		for b.Loop() {
			s, err := client.NewSession()
			noError(b, err)
			noError(b, s.Run("exec true"))
			s.Close()
		}
	})

	roundTrip := func(b *testing.B, w io.Writer, r io.Reader) {
		line := []byte("0123456789\n")
		got := make([]byte, len(line))
		for b.Loop() {
			w.Write(line)
			if _, err := io.ReadFull(r, got); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("RoundTrip", func(b *testing.B) {
		p, err := h.Start(b.Context(), shellbox.Program{Args: []string{"cat"}})
		noError(b, err)
		defer p.Close()
		roundTrip(b, p.Stdin(), p.Stdout())
		p.Stdin().Close()
	})
	b.Run("RoundTrip/floor", func(b *testing.B) {
		s, err := client.NewSession()
		noError(b, err)
		defer s.Close()
		w, _ := s.StdinPipe()
		r, _ := s.StdoutPipe()
		noError(b, s.Start("exec cat"))
		roundTrip(b, w, r)
	})

	const size = 100 << 20
	output := func(b *testing.B, r io.Reader) {
		buf := make([]byte, 32<<10)
		var n int64
		for n < size {
			m, err := r.Read(buf)
			if n += int64(m); err != nil && n < size {
				b.Fatal(err)
			}
		}
	}
	for _, terminal := range []bool{false, true} {
		name := "Output"
		var t *shellbox.Terminal
		if terminal {
			name, t = "OutputTerminal", &shellbox.Terminal{Rows: 24, Cols: 80}
		}
		program := []string{"head", "-c", "104857600", "/dev/zero"}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				p, err := h.Start(b.Context(), shellbox.Program{Args: program, Terminal: t})
				noError(b, err)
				output(b, p.Stdout())
				finish(p)
			}
		})
		b.Run(name+"/floor", func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				s, err := client.NewSession()
				noError(b, err)
				if terminal {
					noError(b, s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.ONLCR: 0}))
				}
				r, _ := s.StdoutPipe()
				noError(b, s.Start("exec head -c 104857600 /dev/zero"))
				output(b, r)
				s.Wait()
				s.Close()
			}
		})
	}
	b.Run("Input", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			p, err := h.Start(b.Context(), shellbox.Program{Args: []string{"cat"}})
			noError(b, err)
			go finish(p)
			io.Copy(struct{ io.Writer }{p.Stdin()}, io.LimitReader(zeros{}, size))
			p.Stdin().Close()
			p.Wait()
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func BenchmarkSSH(b *testing.B) { benchmarkHost(b, hostOf(b, sshdtest.Start(b), Config{})) }
