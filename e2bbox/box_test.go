package e2bbox

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/sandbox"
)

func TestBox(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := configOf(t, g)
	c.Env, c.Metadata, c.Dir = []string{"A=1", "B=x y", "A=2"}, map[string]string{"k": "v"}, "/tmp"
	b := newBox(t, c)
	does(t, b, `pwd; echo "$A $B $E2B_SANDBOX"`, "/tmp\n2 x y true\n")
	require.Equal(t, "E2BBox", b.String())
	data := make([]byte, 20<<20)
	rand.Read(data)
	var out bytes.Buffer
	code, err := b.Run(within(t), &sandbox.Cmd{Args: []string{"cat"}, Stdin: bytes.NewReader(data),
		Stdout: &out})
	require.NoError(t, err)
	require.Zero(t, code)
	require.True(t, bytes.Equal(data, out.Bytes()))
	list, err := c.List(within(t))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, b.SandboxID(), list[0].ID)
	c.Metadata = map[string]string{"k": "w"}
	list, err = c.List(within(t))
	require.NoError(t, err)
	require.Empty(t, list)
	c.Metadata = nil
	require.NoError(t, b.Close())
	list, err = c.List(within(t))
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, c.Kill(within(t), b.SandboxID()))
	_, err = b.Execute(within(t), "true")
	require.ErrorIs(t, err, sandbox.ErrClosed)
}

// TestMetadata sets an attribute of a file that clients of E2B's API see as metadata.
func TestMetadata(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	b := newBox(t, configOf(t, g))
	require.NoError(t, b.Files().WriteFile(within(t), "/tmp/f", nil, 0o600))
	require.NoError(t, b.Files().SetAttributes(within(t), "/tmp/f",
		map[string][]byte{"e2b.k": []byte("v"), "other": []byte("w")}))
	s, err := g.Control.Connect(within(t), b.SandboxID(), 60)
	require.NoError(t, err)
	var got e2b.EntryResponse
	require.NoError(t, g.Client(s).Call(within(t), e2b.FilesService+"Stat",
		&e2b.PathRequest{Path: "/tmp/f"}, &got))
	require.Equal(t, map[string]string{"k": "v"}, got.Entry.Metadata)
}

// TestUser runs a box as another user than the template's.
func TestUser(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := configOf(t, g)
	c.User = "user"
	does(t, newBox(t, c), "id -un; pwd", "user\n/home/user\n")
}

// TestAttach takes a box over, from this program and after Detach, and finds its shell as it was.
func TestAttach(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := configOf(t, g)
	first, err := New(within(t), c)
	require.NoError(t, err)
	defer first.Close()
	does(t, first, "cd /usr; X=1", "")
	beside, err := c.Join(within(t), first.SandboxID())
	require.NoError(t, err)
	does(t, beside, "pwd; echo $X", "/usr\n1\n")
	require.NoError(t, beside.Close())
	second, err := c.Attach(within(t), first.SandboxID())
	require.NoError(t, err)
	does(t, second, "pwd; echo $X", "/usr\n1\n")
	_, err = first.Execute(within(t), "true")
	require.ErrorIs(t, err, sandbox.ErrLost)
	require.NoError(t, first.Close()) // and leaves the box
	does(t, second, "echo $X", "1\n")
	require.NoError(t, second.Extend(within(t), time.Hour))
	require.NoError(t, second.Detach())
	list, err := c.List(within(t))
	require.NoError(t, err)
	require.Greater(t, time.Until(list[0].Ends), 50*time.Minute)
	third, err := c.Attach(within(t), first.SandboxID())
	require.NoError(t, err)
	does(t, third, "pwd; echo $X", "/usr\n1\n")
	require.NoError(t, third.Close())
	_, err = c.Attach(within(t), first.SandboxID())
	require.True(t, e2b.HasStatus(err, 404), "%v", err)
}

// TestPauseAtEnd: the sandbox of a program that has gone is paused at its end, and Attach finds its
// shell as it was.
func TestPauseAtEnd(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	c := configOf(t, g)
	c.PauseAtEnd = true
	first, err := New(within(t), c)
	require.NoError(t, err)
	defer first.Close()
	does(t, first, "cd /usr; X=1", "")
	require.NoError(t, first.Detach())
	require.NoError(t, g.Control.SetTimeout(within(t), first.SandboxID(), 1))
	eventually(t, "it is paused", func() bool {
		list, err := c.List(within(t))
		require.NoError(t, err)
		return list[0].Paused
	})
	second, err := c.Attach(within(t), first.SandboxID())
	require.NoError(t, err)
	does(t, second, "pwd; echo $X", "/usr\n1\n")
	require.NoError(t, second.Close())
}

// TestAttachForeign attaches to a sandbox that no E2BBox has made.
func TestAttachForeign(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	s := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	c := configOf(t, g)
	_, err := c.Join(within(t), s.SandboxID)
	require.ErrorContains(t, err, "no box runs in it")
	b, err := c.Attach(within(t), s.SandboxID)
	require.NoError(t, err)
	does(t, b, "echo $0", "sh\n")
	require.NoError(t, b.Close())
}

// TestURL reaches a server in the box from outside.
func TestURL(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	b := newBox(t, configOf(t, g))
	l, err := b.Listen(within(t), "tcp", "127.0.0.1:8080")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello from "+r.URL.Path)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-served
	}()
	address, header := b.URL(8080)
	r, err := http.NewRequestWithContext(within(t), "GET", address+"/x", nil)
	require.NoError(t, err)
	r.Header = header
	resp, err := g.Control.HTTP.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "hello from /x", string(text))

	c := Config{APIKey: "k", Domain: "example.com"}
	c, err = c.withDefaults()
	require.NoError(t, err)
	address, _ = c.open().address(&e2b.Sandbox{SandboxID: "id"}, 80)
	require.Equal(t, "https://80-id.example.com", address)
}
