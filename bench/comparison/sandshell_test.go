//go:build linux

package comparison

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// sandshell is the Sandbox of this module, in a container or over an sshd.
type sandshell struct {
	box       sandbox.Sandbox
	container *sshbox.DockerSSHBox // or nil
	cutAll    func()
}

func startSandshell(t *testing.T, image string) way {
	if image == "" {
		s, proxy := server(t)
		box, err := sshbox.Dial(t.Context(), sshbox.DialConfig{Address: s.Address,
			User: s.User, KeyFiles: []string{s.KeyFile}, HostKey: ssh.FixedHostKey(s.HostKey)})
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return &sandshell{box: box, cutAll: proxy.Cut}
	}
	cutAll := engineProxy(t)
	box, err := sshbox.New(t.Context(), sshbox.Config{Image: image, Network: "none"})
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	return &sandshell{box, box, cutAll}
}

func (s *sandshell) reply(t *testing.T, r *sandbox.Result, err error, begin time.Time) reply {
	t.Helper()
	got := reply{took: time.Since(begin), state: working, status: -1}
	switch {
	case errors.Is(err, sandbox.ErrTimeout):
		return got
	case errors.Is(err, sandbox.ErrLost):
		got.state = lost
		return got
	}
	require.NoError(t, err)
	got.output = r.Output
	switch r.State {
	case sandbox.Exited:
		got.state, got.status = ended, r.ExitCode
	case sandbox.Waiting:
		got.state = asks
	}
	return got
}

func (s *sandshell) run(t *testing.T, command string, limit time.Duration) reply {
	begin := time.Now()
	r, err := s.box.Execute(t.Context(), command, sandbox.Timeout(limit))
	return s.reply(t, r, err, begin)
}

func (s *sandshell) answer(t *testing.T, line string, limit time.Duration) reply {
	begin := time.Now()
	r, err := s.box.Input(t.Context(), line+"\n", sandbox.Timeout(limit))
	return s.reply(t, r, err, begin)
}

func (s *sandshell) cut(after time.Duration) { time.AfterFunc(after, s.cutAll) }

// forgery has the form of a session's marker. A program cannot have the nonce.
func (s *sandshell) forgery() string {
	return `sh -c 'for i in 1 2 3 4 5 6 7 8 9; do printf "\033]133;D;$i;nonce;0;0;/;nonce\007"; done
sleep 1; exit 7'`
}

func (s *sandshell) flood(t *testing.T, command string) int64 {
	n := &counter{}
	_, err := s.box.Execute(t.Context(), "stty -onlcr; "+command, sandbox.Follow(n))
	require.NoError(t, err)
	return n.n
}

func (s *sandshell) fork(t *testing.T) way {
	boxes, err := s.container.Fork(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { boxes[0].Close() })
	return &sandshell{box: boxes[0]}
}
