package e2b_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestProcess runs programs in both forms of the protocol.
func TestProcess(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "base", EnvVars: map[string]string{"OF_ALL": "1"}})
	for _, codec := range []e2b.Codec{e2b.JSON, e2b.Binary} {
		t.Run(codec.Name(), func(t *testing.T) {
			c := g.Client(box)
			c.Codec = codec
			r := does(t, c, `printf 'a\377\n'; echo b >&2; echo $OF_ALL $E2B_SANDBOX_ID; exit 3`)
			require.Equal(t, "a\xff\n1 "+box.SandboxID+"\n", r.stdout.String())
			require.Equal(t, "b\n", r.stderr.String())
			require.Equal(t, &e2b.EndEvent{ExitCode: 3, Exited: true, Status: "exit status 3",
				Error: "exit status 3"}, r.end)

			req := shell("pwd; echo $X; cat")
			yes := true
			req.Stdin, req.Process.Cwd = &yes, "/tmp"
			req.Process.Envs = map[string]string{"X": "y z"}
			s, r := start(t, c, req)
			var list e2b.ListResponse
			require.NoError(t, c.Call(within(t), e2b.ProcessService+"List", &e2b.Empty{}, &list))
			require.Len(t, list.Processes, 1)
			require.Equal(t, r.pid, list.Processes[0].PID)
			require.Equal(t, req.Process, list.Processes[0].Config)
			require.NoError(t, c.Call(within(t), e2b.ProcessService+"SendInput",
				&e2b.SendInputRequest{Process: &e2b.Selector{PID: r.pid},
					Input: &e2b.Input{Stdin: []byte("in\n")}}, &e2b.Empty{}))
			require.NoError(t, c.Call(within(t), e2b.ProcessService+"CloseStdin", of(r.pid),
				&e2b.Empty{}))
			r.read(t, s, nil)
			require.NoError(t, r.err)
			require.Equal(t, "/tmp\ny z\nin\n", r.stdout.String())
			require.True(t, r.end.Exited)

			var e *e2b.Error
			err := c.Call(within(t), e2b.ProcessService+"CloseStdin", of(r.pid), &e2b.Empty{})
			require.ErrorAs(t, err, &e)
			require.Equal(t, e2b.NotFound, e.Code)
		})
	}
}

// TestStreamInput sends input as a stream, which ends in a message that names no process.
func TestStreamInput(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "small"}))
	req := shell("cat")
	req.Stdin = nil
	s, r := start(t, c, req)
	frames := func(messages ...*e2b.StreamInputRequest) *strings.Reader {
		var b []byte
		for _, m := range messages {
			data, err := e2b.Binary.Marshal(m)
			require.NoError(t, err)
			b = e2b.AppendFrame(b, data)
		}
		return strings.NewReader(string(b))
	}
	part := func(text string) *e2b.StreamInputRequest {
		return &e2b.StreamInputRequest{Data: &e2b.InputData{Input: &e2b.Input{
			Stdin: []byte(text)}}}
	}
	require.NoError(t, c.Upload(within(t), e2b.ProcessService+"StreamInput",
		frames(&e2b.StreamInputRequest{Start: of(r.pid)}, part("one "),
			&e2b.StreamInputRequest{KeepAlive: &e2b.Empty{}}, part("two")), &e2b.Empty{}))
	err := c.Upload(within(t), e2b.ProcessService+"StreamInput", frames(part("x")), &e2b.Empty{})
	require.ErrorContains(t, err, "names no process")
	require.NoError(t, c.Call(within(t), e2b.ProcessService+"CloseStdin", of(r.pid), &e2b.Empty{}))
	r.read(t, s, nil)
	require.Equal(t, "one two", r.stdout.String())
}

// TestLateConnect checks that what a process prints while nobody is connected is kept.
func TestLateConnect(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "small"}))
	s, r := start(t, c, shell(`echo before; until [ -e /tmp/go ]; do sleep 0.05; done
		echo meanwhile; touch /tmp/said; until [ -e /tmp/end ]; do sleep 0.05; done; echo last`))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	s.Close()
	does(t, c, "touch /tmp/go; until [ -e /tmp/said ]; do sleep 0.05; done")
	late, err := c.Stream(within(t), e2b.ProcessService+"Connect", of(r.pid))
	require.NoError(t, err)
	defer late.Close()
	again := &run{}
	again.read(t, late, func() bool { return again.stdout.Len() > 0 })
	require.Equal(t, "meanwhile\n", again.stdout.String())
	does(t, c, "touch /tmp/end")
	again.read(t, late, nil)
	require.NoError(t, again.err)
	require.Equal(t, r.pid, again.pid)
	require.Equal(t, "meanwhile\nlast\n", again.stdout.String())
	require.Equal(t, "exit status 0", again.end.Status)
}

// TestSlowReader checks that a client that does not read holds up neither the process nor other
// clients for long.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "small"}))
	const size = 60 << 20 // more than the buffers of a connection
	s, r := start(t, c, shell(fmt.Sprintf("head -c %d /dev/zero; sleep 60", size)))
	slow, err := c.Stream(within(t), e2b.ProcessService+"Connect", of(r.pid))
	require.NoError(t, err)
	defer slow.Close()
	r.read(t, s, func() bool { return r.stdout.Len() == size })
	require.NoError(t, r.err)
	lagging := &run{}
	lagging.read(t, slow, nil)
	require.ErrorContains(t, lagging.err, "this reader is too slow")
}

// TestKill checks that a process ends with all that it has started: by SIGKILL and by its deadline.
func TestKill(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "base"}))
	tree := "sleep 7777 & sleep 7778 & echo up; wait"
	left := "pgrep -f 'sleep 777[78]'; true"
	s, r := start(t, c, shell(tree))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	require.NoError(t, c.Call(within(t), e2b.ProcessService+"SendSignal", &e2b.SendSignalRequest{
		Process: &e2b.Selector{PID: r.pid}, Signal: e2b.SIGKILL}, &e2b.Empty{}))
	r.read(t, s, nil)
	require.Equal(t, &e2b.EndEvent{ExitCode: -1, Status: "signal: killed",
		Error: "signal: killed"}, r.end)
	require.Empty(t, does(t, c, left).stdout.String())

	header := c.Header.Clone()
	header.Set("Connect-Timeout-Ms", "700")
	limited := *c
	limited.Header = header
	s, r = start(t, &limited, shell(tree))
	r.read(t, s, nil)
	require.ErrorContains(t, r.err, "deadline_exceeded")
	require.Empty(t, does(t, c, left).stdout.String())

	s, r = start(t, c, shell("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.1; done"))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	require.NoError(t, c.Call(within(t), e2b.ProcessService+"SendSignal", &e2b.SendSignalRequest{
		Process: &e2b.Selector{PID: r.pid}, Signal: e2b.SIGTERM}, &e2b.Empty{}))
	r.read(t, s, nil)
	require.Equal(t, "up\nbye\n", r.stdout.String())
	require.EqualValues(t, 4, r.end.ExitCode)
}

// TestTerminal types into a terminal and changes its size.
func TestTerminal(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := g.Client(g.New(t, e2b.NewSandbox{TemplateID: "base"}))
	s, r := start(t, c, &e2b.StartRequest{Process: &e2b.ProcessConfig{Cmd: "/bin/bash",
		Args: []string{"-i", "-l"}, Envs: map[string]string{"TERM": "xterm-256color"}},
		PTY: &e2b.PTY{Size: &e2b.Size{Cols: 100, Rows: 30}}})
	keys := func(text string) {
		t.Helper()
		require.NoError(t, c.Call(within(t), e2b.ProcessService+"SendInput",
			&e2b.SendInputRequest{Process: &e2b.Selector{PID: r.pid},
				Input: &e2b.Input{PTY: []byte(text)}}, &e2b.Empty{}))
	}
	shows := func(text string) {
		t.Helper()
		r.read(t, s, func() bool { return strings.Contains(r.pty.String(), text) })
		require.NoError(t, r.err)
	}
	keys("stty size\n")
	shows("30 100\r\n")
	require.NoError(t, c.Call(within(t), e2b.ProcessService+"Update", &e2b.UpdateRequest{
		Process: &e2b.Selector{PID: r.pid}, PTY: &e2b.PTY{Size: &e2b.Size{Cols: 90, Rows: 20}}},
		&e2b.Empty{}))
	keys("stty size; echo $$\n")
	shows("20 90\r\n" + fmt.Sprint(r.pid))
	keys("exit 5\n")
	r.read(t, s, nil)
	require.EqualValues(t, 5, r.end.ExitCode)
}

// TestPausedStreams checks that a pause cuts the streams, and that the processes go on afterwards.
func TestPausedStreams(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	c := g.Client(box)
	s, r := start(t, c, shell("echo up; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo done"))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	require.NoError(t, g.Control.Pause(within(t), box.SandboxID))
	r.read(t, s, nil)
	require.Error(t, r.err)
	err := c.Call(within(t), e2b.ProcessService+"List", &e2b.Empty{}, &e2b.ListResponse{})
	require.True(t, e2b.HasStatus(err, 502), "%v", err)
	_, err = g.Control.Connect(within(t), box.SandboxID, 60)
	require.NoError(t, err)
	late, err := c.Stream(within(t), e2b.ProcessService+"Connect", of(r.pid))
	require.NoError(t, err)
	defer late.Close()
	does(t, c, "touch /tmp/go")
	r = &run{}
	r.read(t, late, nil)
	require.NoError(t, r.err)
	require.Equal(t, "done\n", r.stdout.String())
}

// TestKilledSandbox checks that the end of a sandbox cuts the streams, and what is answered then.
func TestKilledSandbox(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	c := g.Client(box)
	s, r := start(t, c, shell("echo up; sleep 600"))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	began := time.Now()
	require.NoError(t, g.Control.Kill(within(t), box.SandboxID))
	r.read(t, s, nil)
	require.Error(t, r.err)
	require.NotContains(t, r.err.Error(), "internal")
	require.Less(t, time.Since(began), testenv.Limit)
	err := c.Call(within(t), e2b.ProcessService+"List", &e2b.Empty{}, &e2b.ListResponse{})
	require.True(t, e2b.HasStatus(err, 502), "%v", err)
	require.ErrorContains(t, err, "The sandbox was not found")
	require.True(t, e2b.HasStatus(g.Control.Kill(within(t), box.SandboxID), 404))
}
