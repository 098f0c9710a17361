package sshbox

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// join attaches to a box beside those that have it.
func join(t testing.TB, box *DockerSSHBox) *DockerSSHBox {
	t.Helper()
	b, err := Engine{}.Join(testContext(t), box.ContainerID())
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

// TestJoin has two programs use one box: its main session in turn, a session and a job of the
// other, and what is each one's own.
func TestJoin(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	first := newBox(t, Config{Image: testImage, Network: "none"})
	expect(t, first, "cd /usr; X=5; false", 1, "")
	second := join(t, first)
	require.True(t, second.Shared())
	expect(t, second, "echo $? $X; pwd", 0, "1 5\n/usr\n")
	expect(t, second, "cd /tmp; X=6", 0, "")
	expect(t, first, "pwd; echo $X", 0, "/tmp\n6\n")
	require.True(t, first.Shared())
	for range 20 {
		expect(t, second, "X=$((X+1)); echo $X >>/tmp/log", 0, "")
		expect(t, first, "X=$((X+1)); echo $X >>/tmp/log", 0, "")
	}
	expect(t, first, "echo $X; wc -l </tmp/log", 0, "46\n40\n")

	// Who has ended the shell does not keep the session from the other.
	for range 5 {
		r, err := first.Execute(ctx, "exit 3")
		require.NoError(t, err)
		require.True(t, r.Restarted)
		expect(t, second, "echo $?", 0, "3\n")
	}

	// Ids do not collide, and each finds what the other has opened.
	mine, err := first.Open(ctx)
	require.NoError(t, err)
	theirs, err := second.Open(ctx)
	require.NoError(t, err)
	require.NotEqual(t, mine.ID(), theirs.ID())
	expect(t, theirs, "Y=theirs", 0, "")
	expect(t, mine, "Y=mine", 0, "")
	found, ok := first.Session(theirs.ID())
	require.True(t, ok)
	expect(t, found, "echo $Y", 0, "theirs\n")
	found, ok = second.Session(mine.ID())
	require.True(t, ok)
	expect(t, found, "echo $Y", 0, "mine\n")
	require.Len(t, first.Sessions(), 3)
	require.Len(t, second.Sessions(), 3)
	require.NoError(t, found.Close())
	require.ErrorIs(t, errorOf(mine.Execute(ctx, "echo still there")), sandbox.ErrClosed)
	require.Len(t, first.Sessions(), 2)

	// What one has opened or begun, the other finds at once.
	for range 20 {
		s, err := first.Open(ctx)
		require.NoError(t, err)
		_, ok := second.Session(s.ID())
		require.True(t, ok)
		require.NoError(t, s.Close())
	}

	// A session is busy while another program's call is under way.
	ended := make(chan error, 1)
	go func() {
		ended <- errorOf(first.Execute(ctx,
			"touch /tmp/on; while [ -e /tmp/on ]; do sleep 0.01; done"))
	}()
	script(t, second, "until [ -e /tmp/on ]; do sleep 0.01; done")
	require.ErrorIs(t, errorOf(second.Execute(ctx, "echo no")), sandbox.ErrBusy)
	script(t, second, "rm /tmp/on")
	require.NoError(t, <-ended)
	expect(t, second, "echo yes", 0, "yes\n")

	// Another program can wait for a command that one has left running.
	r, err := first.Execute(ctx, "echo one; until [ -e /tmp/go ]; do sleep 0.01; done; echo two",
		sandbox.Yield(50*time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	require.ErrorIs(t, errorOf(second.Execute(ctx, "echo no")), sandbox.ErrBusy)
	script(t, second, "touch /tmp/go")
	r, err = second.Wait(ctx)
	wantExited(t, r, err, "one\ntwo\n")
	expect(t, first, "echo $?", 0, "0\n")

	// It has ended before the other one waits for it.
	r, err = first.Execute(ctx, "echo three; until [ -e /tmp/end ]; do sleep 0.01; done; false",
		sandbox.Yield(50*time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	script(t, first, "touch /tmp/end")
	for busy := true; busy; {
		busy, _ = first.Activity()
	}
	r, err = second.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "three\n", r.Output)
	require.Equal(t, 1, r.ExitCode)
	require.ErrorIs(t, errorOf(first.Wait(ctx)), sandbox.ErrIdle)
	require.ErrorIs(t, errorOf(second.Wait(ctx)), sandbox.ErrIdle)

	// A job's log is for all.
	job, err := first.Background(ctx, "read -r line; echo got $line; exit 3")
	require.NoError(t, err)
	same, ok := second.Job(job.ID())
	require.True(t, ok)
	require.Equal(t, job.Command(), same.Command())
	require.NoError(t, same.Input(ctx, "hello\n"))
	for _, j := range []sandbox.Job{job, same} {
		r, err := j.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, r.ExitCode)
		require.Contains(t, r.Output, "got hello\n")
	}
	another, err := second.Background(ctx, "true")
	require.NoError(t, err)
	require.NotEqual(t, job.ID(), another.ID())

	// Each has listeners and connections of its own.
	for i, b := range []*DockerSSHBox{first, second} {
		l, err := b.Listen(ctx, "unix", []string{"/tmp/first", "/tmp/second"}[i])
		require.NoError(t, err)
		defer l.Close()
		from := []*DockerSSHBox{second, first}[i]
		c, err := from.Dial(ctx, "unix", l.Addr().String())
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		echo := func(to, from net.Conn) {
			_, err := to.Write([]byte("x"))
			require.NoError(t, err)
			var b [1]byte
			_, err = from.Read(b[:])
			require.NoError(t, err)
		}
		echo(c, accepted)
		echo(accepted, c)
		c.Close()
		accepted.Close()
	}

	// The one that has joined leaves the box running.
	require.NoError(t, second.Close())
	expect(t, first, "echo still here", 0, "still here\n")
	require.ErrorIs(t, errorOf(second.Execute(ctx, ":")), sandbox.ErrClosed)
}

func errorOf(_ *sandbox.Result, err error) error { return err }

// TestJoinTogether has several programs execute commands in one session at once. Each command is
// executed once, or refused with ErrBusy.
func TestJoinTogether(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	first := newBox(t, Config{Image: testImage, Network: "none"})
	boxes := []*DockerSSHBox{first, join(t, first), join(t, first)}
	var all sync.WaitGroup
	busy := make([]int, len(boxes))
	for i, b := range boxes {
		all.Go(func() {
			for n := 0; n < 40; {
				word := strings.Repeat(string(rune('a'+i)), n+1)
				r, err := b.Execute(ctx, "N=$((N+1)); echo "+word)
				if errors.Is(err, sandbox.ErrBusy) {
					busy[i]++
					continue
				}
				if err != nil || r.Output != word+"\n" || r.ExitCode != 0 {
					t.Errorf("%s: %+v, %v", word, r, err)
					return
				}
				n++
			}
		})
	}
	all.Wait()
	t.Log("busy", busy)
	expect(t, first, "echo $N", 0, "120\n")
}

// TestJoinCut has one program cut off while its command runs. Another one takes the session. The
// first one's call then says so, and both go on.
func TestJoinCut(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	proxy := newEngineProxy(t)
	first := proxy.box(t, nil)
	second := join(t, first)
	for range 3 {
		ended := make(chan error, 1)
		go func() {
			ended <- errorOf(first.Execute(ctx,
				"touch on; echo begun; while [ -e on ]; do sleep 0.01; done; echo ended"))
		}()
		script(t, second, "until [ -e on ]; do sleep 0.01; done")
		require.ErrorIs(t, errorOf(second.Wait(ctx)), sandbox.ErrBusy)
		proxy.Unplug(true)
		var r *sandbox.Result
		for { // until boxd has noticed
			var err error
			r, err = second.Wait(ctx, sandbox.Yield(time.Millisecond))
			if !errors.Is(err, sandbox.ErrBusy) {
				require.NoError(t, err)
				break
			}
		}
		require.Equal(t, sandbox.Running, r.State)
		proxy.Unplug(false)
		require.ErrorIs(t, <-ended, sandbox.ErrCut)
		require.ErrorIs(t, errorOf(first.Execute(ctx, "echo no")), sandbox.ErrBusy)
		script(t, second, "rm on")
		r, err := first.Wait(ctx)
		wantExited(t, r, err, "begun\nended\n")

		// Nobody has got this result.
		go func() {
			ended <- errorOf(first.Execute(ctx,
				"touch on; echo again; while [ -e on ]; do sleep 0.01; done; touch off; exit_() { "+
					"return 7; }; exit_"))
		}()
		script(t, second, "until [ -e on ]; do sleep 0.01; done")
		proxy.Unplug(true)
		script(t, second, "rm on; until [ -e off ]; do sleep 0.01; done; rm off")
		for {
			r, err = second.Wait(ctx)
			if !errors.Is(err, sandbox.ErrBusy) {
				break
			}
		}
		proxy.Unplug(false)
		require.NoError(t, err)
		require.Equal(t, "again\n", r.Output)
		require.Equal(t, 7, r.ExitCode)
		require.ErrorIs(t, <-ended, sandbox.ErrCut)
		expect(t, second, "echo $?", 0, "7\n")
	}
	require.NoError(t, first.Lost(ctx))
}

// TestJoinCutEnds has another program end the main session's shell, and close a session, of one
// that is cut off. When that one is there again, it goes on with the shell that has taken the
// place.
func TestJoinCutEnds(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	proxy := newEngineProxy(t)
	first := proxy.box(t, nil)
	second := join(t, first)
	closed, err := first.Open(ctx)
	require.NoError(t, err)
	expect(t, first, "X=before", 0, "")
	proxy.Unplug(true)
	for { // until boxd has noticed
		r, err := second.Execute(ctx, "exit 3", sandbox.AtQuestion(sandbox.Fail))
		if errors.Is(err, sandbox.ErrBusy) {
			continue
		}
		require.NoError(t, err)
		require.True(t, r.Restarted)
		break
	}
	theirs, ok := second.Session(closed.ID())
	require.True(t, ok)
	require.NoError(t, theirs.Close())
	proxy.Unplug(false)
	r, err := first.Execute(ctx, "echo $X on")
	for errors.Is(err, sandbox.ErrCut) { // it went to the shell that has ended
		r, err = first.Execute(ctx, "echo $X on")
	}
	wantExited(t, r, err, "on\n")
	require.ErrorIs(t, errorOf(closed.Execute(ctx, "echo no")), sandbox.ErrClosed)
	require.NoError(t, first.Lost(ctx))
}

// TestJoinLike has a program copy sessions and the box under ids that another one has just taken:
// what runs there goes on.
func TestJoinLike(t *testing.T) {
	t.Parallel()
	testEngine(t)
	first := newBox(t, Config{Image: testImage, Network: "none"})
	second := join(t, first)
	expect(t, second, "X=5", 0, "")
	opened, err := first.Open(t.Context())
	require.NoError(t, err)
	expect(t, opened, "Y=6", 0, "")
	like, err := second.Open(t.Context(), sandbox.Like(second))
	require.NoError(t, err)
	require.NotEqual(t, opened.ID(), like.ID())
	expect(t, like, "echo $X", 0, "5\n")
	expect(t, opened, "echo $Y", 0, "6\n")
	for _, box := range []*DockerSSHBox{first, second} {
		s := snapshot(t, box)
		require.Empty(t, s.Lost)
	}
	expect(t, opened, "echo $Y", 0, "6\n")
	require.Len(t, first.Sessions(), 3)
}
