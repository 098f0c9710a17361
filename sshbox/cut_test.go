package sshbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/faulttest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestCut cuts the connection during each kind of work that a box does.
func TestCut(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	box := proxy.box(t, nil)
	for _, cut := range []struct {
		what string
		test func(*testing.T, *engineProxy, *DockerSSHBox)
	}{
		{"Printing", cutPrinting}, {"Waiting", cutWaiting}, {"Job", cutJob}, {"Run", cutRun},
		{"Copies", cutCopies}, {"Idle", cutIdle},
		{"CopyAndDial", cutCopyAndDial}, // closes the box
	} {
		t.Run(cut.what, func(t *testing.T) { cut.test(t, proxy, box) })
	}
}

// cutIdle cuts the connection while no command is running.
func cutIdle(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	_, err := box.Execute(ctx, "cd /usr/share; X=1; f() { echo f$X; }")
	noError(t, err)
	for range 5 {
		proxy.Cut()
		r, err := box.Execute(ctx, "f; pwd; echo $((X+=1))")
		noError(t, err)
		if !strings.Contains(r.Output, "/usr/share\n") || r.Restarted {
			t.Fatalf("got %+v", r)
		}
	}
	r, err := box.Execute(ctx, "f")
	wantExited(t, r, err, "f6\n")
}

// cutPrinting cuts the connection many times while a command prints.
func cutPrinting(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		next := proxy.Passed()
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			// Cut by bytes, not by time: on a machine of any speed, each connection carries some.
			if passed := proxy.Passed(); passed > next {
				proxy.Cut()
				next = passed + int64(100_000+rand.IntN(900_000))
			}
		}
	})
	r, err := box.Execute(ctx, "head -c 3000000 /dev/urandom | base64 | tee printed",
		sandbox.MaxOutput(20<<20))
	close(stop)
	cutting.Wait()
	noError(t, err)
	sum := sha256.Sum256([]byte(r.Output))
	r, err = box.Execute(ctx, "sha256sum printed")
	noError(t, err)
	if !strings.HasPrefix(r.Output, hex.EncodeToString(sum[:])) {
		t.Errorf("the output differs from what was printed: %x, %s", sum, r.Output)
	}
}

// cutWaiting cuts the connection while a command waits for input.
func cutWaiting(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	r, err := box.Execute(ctx, `read -p "name? " x; echo "hello $x"`)
	noError(t, err)
	if r.State != sandbox.Waiting || r.Output != "name? " {
		t.Fatalf("got %+v", r)
	}
	proxy.Cut()
	r, err = box.Input(ctx, "ann\n")
	wantExited(t, r, err, "ann\nhello ann\n")

	// Cuts between many lines of input: each line arrives once, and in order.
	_, err = box.Execute(ctx, "stty -echo; cat > typed", sandbox.Until(nil),
		sandbox.Yield(100*time.Millisecond))
	noError(t, err)
	var want strings.Builder
	for i := range 2000 {
		line := fmt.Sprintf("line %d of those that were typed\n", i)
		want.WriteString(line)
		_, err := box.Input(ctx, line, sandbox.Yield(time.Microsecond))
		noError(t, err)
		if i%100 == 50 {
			proxy.Cut()
		}
	}
	r, err = box.Input(ctx, "\x04")
	noError(t, err)
	if r.State != sandbox.Exited {
		t.Fatalf("got %+v", r)
	}
	r, err = box.Execute(ctx, "stty echo; cat typed", sandbox.MaxOutput(1<<20))
	wantExited(t, r, err, want.String())
}

// cutJob cuts the connection while a job prints.
func cutJob(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	j, err := box.Background(ctx, "for i in $(seq 20000); do echo $i; [ $((i % 2000)) != 0 ] || "+
		"sleep 0.1; done")
	noError(t, err)
	for range 5 {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		proxy.Cut()
	}
	r, err := j.Wait(ctx)
	noError(t, err)
	var want strings.Builder
	for i := 1; i <= 20000; i++ {
		fmt.Fprintln(&want, i)
	}
	if r.ExitCode != 0 || r.Output != want.String() {
		t.Errorf("status %d, %d bytes, want %d", r.ExitCode, len(r.Output), want.Len())
	}
}

// cutRun cuts the connection while a Run reads and prints.
func cutRun(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	in := strings.Repeat("0123456789abcdef", 500_000)
	var out strings.Builder
	done := make(chan error, 1)
	go func() {
		code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader(in),
			Stdout: &out})
		if err == nil && code != 0 {
			err = fmt.Errorf("status %d", code)
		}
		done <- err
	}()
	for range 10 {
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		proxy.Cut()
	}
	noError(t, <-done)
	if out.String() != in {
		t.Errorf("%d of %d bytes came", out.Len(), len(in))
	}
}

// cutCopyAndDial cuts copies and connections, which cannot continue after a cut. They fail soon,
// and can be made again.
func cutCopyAndDial(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	big := filepath.Join(t.TempDir(), "big")
	noError(t, os.WriteFile(big, make([]byte, 16<<20), 0o600))
	for name, do := range map[string]func() error{
		"CopyTo": func() error { return box.CopyTo(ctx, big, "/tmp/copy") },
		"CopyFrom": func() error {
			return box.CopyFrom(ctx, "/dev/shm/../../tmp/big", filepath.Join(t.TempDir(), "copy"))
		},
	} {
		_, err := box.Execute(ctx, "head -c 16000000 /dev/zero > /tmp/big")
		noError(t, err)
		done, before := make(chan error, 1), proxy.Passed()
		go func() { done <- do() }()
		waitFor(t, "the copy to be under way", func() bool { return proxy.Passed() > before+1<<20 })
		proxy.Cut()
		select {
		case err = <-done:
		case <-time.After(testenv.Limit):
			t.Fatalf("%s hangs", name)
		}
		if err != nil && !errors.Is(err, sandbox.ErrCut) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			t.Logf("%s was faster than the cut", name)
		}
		noError(t, do())
	}
	r, err := box.Execute(ctx, "ls -A /tmp | grep sandshell-copy || echo none")
	wantExited(t, r, err, "none\n")

	j, err := box.Background(ctx, `python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 7000))
print("ready", flush=True)
keep = []
while True: keep.append(s.accept()[0])'`)
	noError(t, err)
	waitFor(t, "the server", func() bool {
		data, _, _ := j.Logs(ctx, 0)
		return strings.Contains(string(data), "ready")
	})
	conn, err := box.Dial(ctx, "tcp", "127.0.0.1:7000")
	noError(t, err)
	defer conn.Close()
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	proxy.Cut()
	select {
	case err = <-read:
	case <-time.After(testenv.Limit):
		t.Fatal("the connection hangs")
	}
	if !errors.Is(err, sandbox.ErrCut) {
		t.Errorf("read: %v", err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, sandbox.ErrCut) {
		t.Errorf("write: %v", err)
	}
	for range 20 { // cuts while the connection is being made or has just been made
		conn, err := box.Dial(ctx, "tcp", "127.0.0.1:7000")
		noError(t, err)
		time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, proxy.Cut)
		for err == nil {
			_, err = conn.Write([]byte("x"))
		}
		if !errors.Is(err, sandbox.ErrCut) {
			t.Errorf("write: %v", err)
		}
		conn.Close()
	}
	again, err := box.Dial(ctx, "tcp", "127.0.0.1:7000")
	noError(t, err)
	noError(t, box.Close())
	if _, err := again.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) ||
		errors.Is(err, sandbox.ErrCut) {
		t.Errorf("after the box's Close: %v", err)
	}
}

// TestCutSilently has the connection carry nothing, as happens when a byte has changed on the way.
// The box makes a new connection within 10 s.
func TestCutSilently(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it waits until keepalive notices the cut: TestCut has cuts that are "+
		"noticed at once every day")
	proxy := newEngineProxy(t)
	box := proxy.box(t, nil)
	ctx := testContext(t)
	_, err := box.Execute(ctx, "X=kept")
	noError(t, err)
	proxy.Swallow(faulttest.Both)
	begin := time.Now()
	r, err := box.Execute(ctx, "echo $X")
	wantExited(t, r, err, "kept\n")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the command returned after %v", took)
	}
}

// TestCutDetach detaches while the connection is being made again. Everything keeps running.
func TestCutDetach(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	box := proxy.box(t, func(config *Config) { config.Keep = true })
	ctx := testContext(t)
	_, err := box.Execute(ctx, "X=kept")
	noError(t, err)
	d, err := client.New(client.WithHost("unix://" + proxy.path))
	noError(t, err)
	defer d.Close()
	for range 10 {
		proxy.Cut()
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		noError(t, box.Detach())
		box, err = Engine{Docker: d}.Attach(ctx, box.ContainerID())
		noError(t, err)
		r, err := box.Execute(ctx, "echo $X")
		wantExited(t, r, err, "kept\n")
		if r.Restarted {
			t.Fatal("the main session was lost")
		}
	}
	noError(t, box.Close())
}

// TestCutFiftyTimes cuts the connection at fifty random moments on a busy machine. In no session is
// output lost or repeated.
func TestCutFiftyTimes(t *testing.T) {
	t.Parallel()
	testenv.NeedsFull(t, "TestCut cuts each kind of work every day")
	proxy := newEngineProxy(t)
	box := proxy.box(t, nil)
	ctx := testContext(t)
	busy, stopLoad := context.WithCancel(ctx)
	var load sync.WaitGroup
	for range 2 {
		load.Go(func() {
			for x := 0; busy.Err() == nil; x++ {
				_ = sha256.Sum256([]byte{byte(x)})
			}
		})
	}
	defer load.Wait()
	defer stopLoad()
	stop := make(chan struct{})
	var work sync.WaitGroup
	for i := range 4 {
		s, err := box.Open(ctx)
		noError(t, err)
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				want := fmt.Sprintf("%d %d", i, n)
				r, err := s.Execute(ctx, fmt.Sprintf("N=$((N+1)); seq %d %d; echo '%s' $N", n,
					n+500, want))
				if err != nil {
					t.Error(err)
					return
				}
				var all strings.Builder
				for k := n; k <= n+500; k++ {
					fmt.Fprintln(&all, k)
				}
				fmt.Fprintf(&all, "%s %d\n", want, n+1)
				if r.Output != all.String() || r.ExitCode != 0 || r.State != sandbox.Exited {
					t.Errorf("%s: state %v, status %d, %q", want, r.State, r.ExitCode, r.Output)
					return
				}
			}
		})
	}
	for range 50 {
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		proxy.Cut()
	}
	close(stop)
	work.Wait()
}

// TestCutForGood shows that a box that cannot be reached is lost after Linger, and ends by itself.
func TestCutForGood(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	box := proxy.box(t, func(config *Config) { config.Linger = 2 * time.Second })
	id := box.ContainerID()
	proxy.Unplug(true)
	ctx := testContext(t)
	_, err := box.Execute(ctx, "sleep 100")
	if !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("got %v", err)
	}
	d := testEngine(t)
	waitFor(t, "the box to end by itself", func() bool {
		_, err := d.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		return err != nil
	})
	proxy.Unplug(false)
}
