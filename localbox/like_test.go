package localbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// likeOutput executes a command and returns what it prints.
func likeOutput(t *testing.T, s sandbox.Session, command string) string {
	t.Helper()
	r, err := s.Execute(context.Background(), command)
	require.NoError(t, err)
	return r.Output
}

// TestLikeOptions: what is named beside Like wins.
func TestLikeOptions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	box := open(t, localbox.Config{Dir: t.TempDir()})
	likeOutput(t, box, "cd /; export A=1 B=2; C=3; set -u")
	require.NoError(t, box.Resize(ctx, 30, 90))
	s, err := box.Open(ctx, sandbox.Like(box), sandbox.Dir("/usr"), sandbox.Env("B=new", "D=4"))
	require.NoError(t, err)
	require.Equal(t, "/usr 1 new 3 4\n", likeOutput(t, s, "echo $PWD $A $B $C $D"))
	require.Equal(t, "30 90\n", likeOutput(t, s, "stty size"))
	s, err = box.Open(ctx, sandbox.Like(s), sandbox.Size(40, 0))
	require.NoError(t, err)
	require.Equal(t, "40 80\n", likeOutput(t, s, "stty size"))
	require.Equal(t, "/usr 1 new 3 4\n", likeOutput(t, s, "echo $PWD $A $B $C $D"))
}

// TestLikeJob: a job runs its command in the state of a session.
func TestLikeJob(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	box := open(t, localbox.Config{Dir: t.TempDir()})
	likeOutput(t, box, `f() { echo "in f: $x"; }; x=7; cd /usr`)
	j, err := box.Background(ctx, "f; pwd", sandbox.Like(box))
	require.NoError(t, err)
	r, err := j.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 0, r.ExitCode)
	log, _, err := j.Logs(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, "in f: 7\n/usr\n", strings.ReplaceAll(string(log), "\r", ""))
}

// TestLikeUser: a session of another user is copied as that user, and a state can be given to
// another user.
func TestLikeUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	ctx := context.Background()
	box := open(t, localbox.Config{Dir: "/"})
	likeOutput(t, box, "x=7; f() { echo $x; }")
	other, err := box.Open(ctx, sandbox.Like(box), sandbox.User("nobody"))
	require.NoError(t, err)
	ask := `f; id -un; [ "$HOME" != /root ] && echo at home`
	require.Equal(t, "7\nnobody\nat home\n", likeOutput(t, other, ask))
	again, err := box.Open(ctx, sandbox.Like(other))
	require.NoError(t, err)
	require.Equal(t, "7\nnobody\nat home\n", likeOutput(t, again, ask))
}

// TestLikeRefused: Open says why a session cannot be like another, and leaves none behind.
func TestLikeRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	box := open(t, localbox.Config{Dir: t.TempDir()})
	other := open(t, localbox.Config{Dir: t.TempDir()})
	_, err := box.Open(ctx, sandbox.Like(other))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "another sandbox: Snapshot and Fork")
	_, err = box.Fork(ctx, 2)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "sandbox.Like makes")
	require.ErrorIs(t, box.Snapshot(ctx), errors.ErrUnsupported)
	_, err = box.Open(ctx, sandbox.Like(struct{ sandbox.Session }{box}))
	require.ErrorIs(t, err, errors.ErrUnsupported, "a wrapper that does not unwrap")

	closed, err := box.Open(ctx)
	require.NoError(t, err)
	closed.Close()
	_, err = box.Open(ctx, sandbox.Like(closed))
	require.ErrorIs(t, err, sandbox.ErrClosed)

	_, err = box.Execute(ctx, "read x; echo got $x")
	require.NoError(t, err)
	_, err = box.Open(ctx, sandbox.Like(box))
	require.ErrorIs(t, err, sandbox.ErrBusy)
	r, err := box.Input(ctx, "y\n")
	require.NoError(t, err)
	require.Contains(t, r.Output, "got y")

	likeOutput(t, box, "exec 7</dev/zero; password=hunter2; readonly password")
	_, err = box.Open(ctx, sandbox.Like(box))
	var incomplete *sandbox.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	require.Equal(t, sandbox.Descriptors, incomplete.Lost[0].Kind)
	require.Equal(t, "main", incomplete.Lost[0].Session)
	require.NotZero(t, incomplete.Lost[0].PID)
	require.ErrorContains(t, err, "would be lost: descriptor 7 → /dev/zero "+
		"(Accept permits to lose descriptors)")
	require.Len(t, box.Sessions(), 1)
}

// TestLikeUnnoticed: the session that is read stays as it is, and so do what its users have not
// been told of yet.
func TestLikeUnnoticed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	box := open(t, localbox.Config{Dir: t.TempDir()})
	_, err := box.Execute(ctx, "sleep 0.1; echo late; (exit 9)", sandbox.Yield(-1))
	require.NoError(t, err)
	for {
		_, err = box.Open(ctx, sandbox.Like(box))
		if !errors.Is(err, sandbox.ErrBusy) {
			break
		}
	}
	require.NoError(t, err)
	r, err := box.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 9, r.ExitCode)
	require.Equal(t, "late\n", r.Output)
	require.Equal(t, "9\n", likeOutput(t, box, "echo $?"))

	if _, err := exec.LookPath("bash"); err != nil {
		return
	}
	likeOutput(t, box, "set -v; printf '\\e[?1049hdrawn'")
	screen, err := box.Screen(ctx)
	require.NoError(t, err)
	_, err = box.Open(ctx, sandbox.Like(box))
	require.NoError(t, err)
	again, err := box.Screen(ctx)
	require.NoError(t, err)
	require.Equal(t, screen, again)
}

// TestLikeCancelled: when ctx ends, Open leaves nothing behind, and the session goes on.
func TestLikeCancelled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tmp := t.TempDir()
	box := open(t, localbox.Config{Dir: t.TempDir(), Env: []string{"TMPDIR=" + tmp}})
	likeOutput(t, box, "big=$(seq 300000); x=1")
	for d := 5 * time.Millisecond; ; d *= 2 {
		short, cancel := context.WithTimeout(ctx, d)
		_, err := box.Open(short, sandbox.Like(box))
		cancel()
		left, dirErr := os.ReadDir(tmp)
		require.NoError(t, dirErr)
		require.Empty(t, left)
		require.Equal(t, "1\n", likeOutput(t, box, "echo $x"))
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Len(t, box.Sessions(), 2)
}

// TestLikeNoDirectory: where no FIFO can be made, Open says so.
func TestLikeNoDirectory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(bin+"/mkfifo", []byte("#!/bin/sh\nexit 1\n"), 0o755))
	tmp := t.TempDir()
	box := open(t, localbox.Config{Dir: t.TempDir(),
		Env: []string{"TMPDIR=" + tmp, "PATH=" + bin + ":" + os.Getenv("PATH")}})
	_, err := box.Open(ctx, sandbox.Like(box))
	require.ErrorContains(t, err, "there is no directory in which mktemp and mkfifo make a FIFO")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestLikeObserved: Like takes the sessions of an observed sandbox.
func TestLikeObserved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	inner := open(t, localbox.Config{Dir: t.TempDir()})
	o := &likeObserver{}
	box := sandbox.Observe(inner, o)
	likeOutput(t, box, "x=5")
	require.NoError(t, box.Resize(ctx, 30, 90))
	for _, like := range []sandbox.Session{box, box.Sessions()[0]} {
		s, err := box.Open(ctx, sandbox.Like(like))
		require.NoError(t, err)
		require.Equal(t, "5\n", likeOutput(t, s, "echo $x"))
		require.Equal(t, [2]int{30, 90}, o.size)
	}
	require.NotContains(t, o.commands, "__sandshell")
}

// A likeObserver notes the size of the last session, and the commands.
type likeObserver struct {
	size     [2]int
	commands string
}

func (o *likeObserver) Open(id string, opts sandbox.SessionOptions) sandbox.SessionObserver {
	o.size = [2]int{opts.Rows, opts.Cols}
	return likeSessionObserver{o}
}

func (o *likeObserver) Background(ctx context.Context, command string,
	opts sandbox.SessionOptions) (context.Context, sandbox.JobObserver) {
	panic("no job")
}

func (o *likeObserver) Run(ctx context.Context, cmd *sandbox.Cmd) (context.Context,
	func(int, error)) {
	return ctx, func(int, error) {}
}

func (o *likeObserver) Close() error { return nil }

type likeSessionObserver struct{ o *likeObserver }

func (s likeSessionObserver) Execute(ctx context.Context, command string) (context.Context,
	sandbox.CommandObserver) {
	s.o.commands += command
	return ctx, likeCommandObserver{}
}
func (s likeSessionObserver) Input(string, sandbox.InputKind) {}
func (s likeSessionObserver) Resize(int, int)                 {}
func (s likeSessionObserver) Close()                          {}

type likeCommandObserver struct{}

func (likeCommandObserver) Write(p []byte) (int, error) { return len(p), nil }
func (likeCommandObserver) Result(*sandbox.Result)      {}
func (likeCommandObserver) End(*sandbox.Result, error)  {}
