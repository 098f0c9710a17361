//go:build linux

package bench

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sshbox"
)

// A place is a transport, with which boxes and floors are made.
type place interface {
	box(ctx context.Context) (sandbox.Sandbox, error)
	// terminal starts bash on a terminal with a box's settings: with echo, without ONLCR.
	terminal() (stream, error)
	// run executes a script without a terminal.
	run(script string, stdin io.Reader, stdout io.Writer) error
}

// A stream is a terminal's input and output.
type stream interface {
	io.ReadWriteCloser
}

// places runs a benchmark for each transport.
func places(b *testing.B, f func(b *testing.B, p place)) {
	b.Run("local", func(b *testing.B) { f(b, local{}) })
	b.Run("ssh", func(b *testing.B) { f(b, startSSHD(b)) })
	b.Run("boxd", func(b *testing.B) { // with the same sshd
		s := startSSHD(b)
		s.boxd = s.dir
		f(b, s)
	})
	b.Run("docker", func(b *testing.B) { f(b, startContainer(b)) })
	b.Run("kube", func(b *testing.B) { f(b, startPod(b)) })
}

// open makes a box. It is closed at the end of the benchmark.
func open(t testing.TB, p place) sandbox.Sandbox {
	t.Helper()
	box, err := p.box(t.Context())
	noError(t, err)
	t.Cleanup(func() { box.Close() })
	return box
}

// execute executes a command, which must succeed.
func execute(t testing.TB, s sandbox.Session, command string,
	opts ...sandbox.ExecOption) *sandbox.Result {
	t.Helper()
	// not the test's context: cleanups use execute, too
	r, err := s.Execute(context.WithoutCancel(t.Context()), command, opts...)
	if err != nil || r.State != sandbox.Exited || r.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v", command, r, err)
	}
	return r
}

func (local) box(ctx context.Context) (sandbox.Sandbox, error) {
	return localbox.New(ctx, localbox.Config{})
}

func (s *sshd) box(ctx context.Context) (sandbox.Sandbox, error) {
	return sshbox.Dial(ctx, sshbox.DialConfig{Address: s.address, User: s.user, Signer: s.key,
		HostKey: s.hostKey, Boxd: s.boxd})
}

func (c *containers) box(ctx context.Context) (sandbox.Sandbox, error) {
	return sshbox.New(ctx, sshbox.Config{Image: testImage, Network: "none"})
}

// shellArgs starts the shell that sessions have.
var shellArgs = []string{"bash", "--noediting", "--norc"}

// A bareShell is a shell on a terminal, without the library, to which the benchmark types as the
// library does.
type bareShell struct {
	stream
	t    testing.TB
	buf  []byte
	seen []byte
}

// bare starts a shell. It ends with the benchmark.
func bare(t testing.TB, p place) *bareShell {
	t.Helper()
	s, err := p.terminal()
	noError(t, err)
	t.Cleanup(func() { s.Close() })
	return &bareShell{stream: s, t: t, buf: make([]byte, 32<<10)}
}

// typeLine types a line.
func (s *bareShell) typeLine(p []byte) {
	if _, err := s.Write(p); err != nil {
		s.t.Fatal(err)
	}
}

// until reads until the terminal shows text and, after it, BEL. The first skip bytes are not
// searched.
func (s *bareShell) until(text []byte, skip int) {
	s.seen = s.seen[:0]
	for n := 0; ; {
		m, err := s.Read(s.buf)
		if err != nil {
			s.t.Fatalf("%v after %d bytes, before %q: %.200q", err, n, text, s.seen)
		}
		if n += m; n < skip {
			continue
		}
		s.seen = append(s.seen, s.buf[:m]...)
		if i := bytes.Index(s.seen, text); i >= 0 && bytes.IndexByte(s.seen[i:], '\a') >= 0 {
			return
		}
	}
}

var _ = []place{local{}, (*sshd)(nil), (*containers)(nil)}
var _ shellbox.Host = local{}
