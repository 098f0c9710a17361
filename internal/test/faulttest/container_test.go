package faulttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// containers makes places in containers. Each is reached over a Wire of its own.
type containers struct {
	docker *client.Client // not over a Wire
	socket string
}

func newContainers(t *testing.T) *containers {
	t.Helper()
	d := dockertest.Engine(t, dockertest.Image)
	socket, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	return &containers{d, socket}
}

func (c *containers) place(r *round) (*place, error) {
	wire, err := NewWire("unix", filepath.Join(r.files, "engine"), "unix", c.socket, Upgrade)
	if err != nil {
		return nil, err
	}
	d, err := client.New(client.WithHost("unix://" + wire.Address()))
	if err != nil {
		return nil, errors.Join(err, closed(wire))
	}
	config := sshbox.Config{Image: dockertest.Image, Network: "none", Docker: d}
	if r.fault.config != nil {
		r.fault.config(&config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	box, err := sshbox.New(ctx, config)
	if err != nil {
		d.Close()
		return nil, errors.Join(err, closed(wire))
	}
	p := &place{box: box, wire: wire, dir: "/tmp", echo: "127.0.0.1:7000", id: box.ContainerID()}
	p.inside = func(script string) error { return c.inside(p.id, script) }
	p.gone = func() error {
		d.Close()
		_, err := c.docker.ContainerInspect(context.Background(), p.id,
			client.ContainerInspectOptions{})
		if err == nil {
			return fmt.Errorf("container %s is there", p.id)
		}
		if !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	}
	p.untold = sync.OnceValue(func() bool {
		missed, err := dockertest.MissedOutOfMemory(context.Background(), c.docker, p.id)
		return err == nil && missed && r.fault.cause == sandbox.LostMemory
	})
	if err := serveEcho(ctx, p); err != nil {
		return nil, errors.Join(err, box.Close(), closed(wire))
	}
	return p, nil
}

func closed(w *Wire) error {
	w.Close()
	return nil
}

// serveEcho starts an echo server in the box, and waits until it answers.
func serveEcho(ctx context.Context, p *place) error {
	if _, err := p.box.Background(ctx, "socat TCP-LISTEN:7000,fork,reuseaddr PIPE"); err != nil {
		return err
	}
	for {
		conn, err := p.box.Dial(ctx, "tcp", p.echo)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// inside executes a script in a container without the library. The script must succeed.
func (c *containers) inside(id, script string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	created, err := c.docker.ExecCreate(ctx, id, client.ExecCreateOptions{AttachStdout: true,
		AttachStderr: true, Cmd: []string{"sh", "-c", script}})
	if err != nil {
		return err
	}
	attached, err := c.docker.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	said, err := io.ReadAll(attached.Reader) // to its end
	if err != nil {
		return err
	}
	ended, err := c.docker.ExecInspect(ctx, created.ID, client.ExecInspectOptions{})
	if err == nil && ended.ExitCode != 0 {
		err = fmt.Errorf("%s: status %d, %q", script, ended.ExitCode, said)
	}
	return err
}

// transportFaults returns the faults of the connection to a box. If there is a cause, they lose the
// box.
func transportFaults(cause sandbox.LostCause) []fault {
	on := func(name string, do func(w *Wire, rng *rand.Rand)) fault {
		return fault{name: name, cuts: cause == "", cause: cause,
			do: func(r *round, rng *rand.Rand) error {
				do(r.wire, rng)
				return nil
			}}
	}
	return []fault{
		on("cut", func(w *Wire, _ *rand.Rand) { w.Cut() }),
		on("cut often", func(w *Wire, rng *rand.Rand) {
			for range 5 {
				w.Cut()
				time.Sleep(upTo(rng, 60*time.Millisecond))
			}
		}),
		on("a bit changed, up", func(w *Wire, _ *rand.Rand) { w.Corrupt(Up) }),
		on("a bit changed, down", func(w *Wire, _ *rand.Rand) { w.Corrupt(Down) }),
		on("half closed, up", func(w *Wire, _ *rand.Rand) { w.HalfClose(Up) }),
		on("half closed, down", func(w *Wire, _ *rand.Rand) { w.HalfClose(Down) }),
		on("swallowed, up", func(w *Wire, _ *rand.Rand) { w.Swallow(Up) }),
		on("swallowed, down", func(w *Wire, _ *rand.Rand) { w.Swallow(Down) }),
		on("swallowed", func(w *Wire, _ *rand.Rand) { w.Swallow(Both) }),
		on("stalled, up", func(w *Wire, _ *rand.Rand) { w.Hold(Up) }),
		on("stalled", func(w *Wire, _ *rand.Rand) { w.Hold(Both) }),
	}
}

// delayed is a fault of the connection that loses nothing.
var delayed = fault{name: "delayed", do: func(r *round, rng *rand.Rand) error {
	r.wire.Delay(20*time.Millisecond + upTo(rng, 100*time.Millisecond))
	time.Sleep(time.Second)
	r.wire.Delay(0)
	return nil
}}

// processFaults returns the faults that kill programs of the box.
func processFaults() []fault {
	kill := func(names string) func(r *round, rng *rand.Rand) error {
		return func(r *round, _ *rand.Rand) error { return r.inside(names) }
	}
	return []fault{
		{name: "shells killed", kills: true, do: kill("pkill -KILL -x bash")},
		{name: "programs killed", kills: true, do: kill(
			`pkill -KILL -x "seq|sleep|cat|sha256sum|find"; true`)},
	}
}

// unplugged is a fault of the connection that lasts for a while.
var unplugged = fault{name: "unplugged", cuts: true, do: func(r *round, rng *rand.Rand) error {
	r.wire.Unplug(true)
	outage := 100*time.Millisecond + upTo(rng, 2500*time.Millisecond)
	if rng.IntN(5) == 0 {
		outage = 7 * time.Second
	}
	time.Sleep(outage)
	r.wire.Unplug(false)
	return nil
}}

func (c *containers) faults() []fault {
	all := append(transportFaults(""), delayed, unplugged)
	all = append(all, processFaults()...)
	all = append(all, fault{name: "join killed", cuts: true,
		do: func(r *round, _ *rand.Rand) error {
			return r.inside(`pkill -KILL -f "[b]oxd join"`)
		}})
	return append(append(all, c.containerFaults()...), c.exhaustions()...)
}

// containerFaults returns the faults that an engine can cause: kill, stop, pause and so on.
func (c *containers) containerFaults() []fault {
	ctx := context.Background()
	keep := func(config *sshbox.Config) { config.Keep = true }
	ends := func(name string, cause sandbox.LostCause, config func(*sshbox.Config),
		do func(id string) error) fault {
		return fault{name: name, cause: cause, cuts: true, kills: true, config: config,
			do: func(r *round, _ *rand.Rand) error { return do(r.id) }}
	}
	return []fault{
		ends("killed", sandbox.LostRemoved, nil, func(id string) error {
			_, err := c.docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
			return err
		}),
		ends("stopped", sandbox.LostRemoved, nil, func(id string) error {
			_, err := c.docker.ContainerStop(ctx, id, client.ContainerStopOptions{})
			return err
		}),
		ends("stopped, kept", sandbox.LostRemoved, keep, func(id string) error {
			_, err := c.docker.ContainerStop(ctx, id, client.ContainerStopOptions{})
			return err
		}),
		ends("restarted", sandbox.LostRemoved, keep, func(id string) error {
			_, err := c.docker.ContainerRestart(ctx, id, client.ContainerRestartOptions{})
			return err
		}),
		ends("removed", sandbox.LostRemoved, nil, func(id string) error {
			_, err := c.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
			if errdefs.IsConflict(err) || errdefs.IsNotFound(err) { // the box was faster
				return nil
			}
			return err
		}),
		ends("ended from inside", sandbox.LostEnded, nil, func(id string) error {
			ended := c.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{
				Condition: container.WaitConditionNotRunning})
			c.inside(id, "kill -TERM 1") // the engine may not know how this script ends
			select {
			case <-ended.Result: // until boxd has ended its programs, the box is there
				return nil
			case err := <-ended.Error:
				if errdefs.IsNotFound(err) {
					return nil
				}
				return err
			}
		}),
		{name: "paused", cuts: true, do: func(r *round, rng *rand.Rand) error {
			if err := docker.Pause(ctx, c.docker, r.id); err != nil {
				return err
			}
			pause := upTo(rng, time.Second)
			if rng.IntN(5) == 0 {
				pause = 12 * time.Second // longer than the silence that ends a connection
			}
			time.Sleep(pause)
			_, err := c.docker.ContainerUnpause(ctx, r.id, client.ContainerUnpauseOptions{})
			return err
		}},
	}
}

// exhaustions returns the faults that use up the limits of the container.
func (c *containers) exhaustions() []fault {
	in := func(name, script, want string, config func(*sshbox.Config)) fault {
		return fault{name: name, kills: true, exhausts: true, config: config,
			do: func(r *round, _ *rand.Rand) error {
				ctx, cancel := context.WithTimeout(context.Background(), callLimit)
				defer cancel()
				s, err := r.box.Open(ctx)
				if err != nil {
					return err
				}
				defer s.Close()
				result, err := s.Execute(ctx, script)
				if err == nil && !strings.Contains(result.Output, want) {
					err = fmt.Errorf("nothing was used up: %q", result.Output)
				}
				return err
			}}
	}
	return []fault{
		in("out of disk", "head -c 100M /dev/zero >/tmp/fill; sleep 0.3; rm /tmp/fill",
			"No space left", func(config *sshbox.Config) {
				config.Mounts = []sshbox.Mount{{Type: sshbox.Tmpfs, Target: "/tmp", Size: 16 << 20}}
			}),
		in("out of memory", "head -c 300M /dev/zero | tail -n 1 >/dev/null; echo status $?",
			"status 137", func(config *sshbox.Config) { config.Memory = 128 << 20 }),
		in("out of processes",
			`p=$(sh -c 'while :; do sleep 1000 >/dev/null & echo $!; done' 2>/dev/null); echo status $?; sleep 0.3; kill $p`, "status 2", func(config *sshbox.Config) { config.PIDs = 64 }),
		{name: "boxd out of memory", cause: sandbox.LostMemory, kills: true, cuts: true,
			exhausts: true, do: useUp, config: func(config *sshbox.Config) {
				config.Memory = 40 << 20
			}},
	}
}

// useUp makes boxd keep so much output that the container runs out of memory.
func useUp(r *round, _ *rand.Rand) error {
	var printing sync.WaitGroup
	defer printing.Wait()
	for range 200 {
		printing.Go(func() {
			r.box.Run(context.Background(), &sandbox.Cmd{Args: []string{"cat", "/dev/zero"},
				Stdout: blocked{r.stop}})
		})
	}
	for end := time.Now().Add(callLimit); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		_, err := r.box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}})
		cancel()
		if errors.Is(err, sandbox.ErrLost) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the box lives: %v", err)
		}
	}
}

// A blocked is a writer that blocks until the round stops.
type blocked struct{ stop chan struct{} }

func (b blocked) Write(p []byte) (int, error) {
	<-b.stop
	return len(p), nil
}
