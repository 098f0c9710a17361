package sshbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os/user"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

func newMachines(t *testing.T, c MachinesConfig) *Machines {
	t.Helper()
	m, err := NewMachines(c)
	require.NoError(t, err)
	return m
}

// TestMachines checks Machines by the suite for places.
func TestMachines(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	require.NoError(t, err)
	c := startSSHD(t).config()
	sandboxtest.RunPlace(t, sandboxtest.PlaceTest{
		Place: newMachines(t, MachinesConfig{Machines: []DialConfig{c}, Boxes: 2}),
		Refuses: []string{"Image", "Memory", "CPUs", "PIDs", "Disk", "Network", "Mounts",
			"Labels"},
		Samples: map[string]sandboxtest.PlaceSample{
			"User": {Spec: sandbox.Spec{User: u.Username}, Probe: "id -u", Want: u.Uid},
		},
	})
}

// TestMachinesSlots checks that no machine has more boxes than it may, that New waits for a slot,
// and that Close gives it back once.
func TestMachinesSlots(t *testing.T) {
	t.Parallel()
	one, other := startSSHD(t).withBoxd(), startSSHD(t).config()
	m := newMachines(t, MachinesConfig{Machines: []DialConfig{one, other}, Boxes: 2})
	var boxes []sandbox.Sandbox
	used := map[string]int{}
	for range 4 {
		box, err := m.New(t.Context(), sandbox.Spec{})
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		boxes = append(boxes, box)
		used[port(t, box)]++
	}
	require.Equal(t, map[string]int{portOf(one.Address): 2, portOf(other.Address): 2}, used)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := m.New(ctx, sandbox.Spec{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "sshbox: wait for a free machine: all have their boxes: "+
		"context deadline exceeded")

	waiting := make(chan sandbox.Sandbox)
	for range 2 {
		go func() {
			box, err := m.New(t.Context(), sandbox.Spec{})
			if err != nil {
				t.Error(err)
			}
			waiting <- box
		}()
	}
	for range 3 { // closing again gives nothing back
		require.NoError(t, boxes[0].Close())
	}
	box := <-waiting
	t.Cleanup(func() { box.Close() })
	require.Equal(t, port(t, box), portOf(m.machines[m.machineOf(t, box)].Address))
	select {
	case extra := <-waiting:
		extra.Close()
		t.Fatal("a slot was given out twice")
	default:
	}
	require.NoError(t, box.Close())
	require.NoError(t, (<-waiting).Close())
	for _, box := range boxes {
		require.NoError(t, box.Close())
	}
	require.Equal(t, []slots{{free: 2}, {free: 2}}, m.slots)
}

// port returns the port of the sshd that a box is connected to, as its session knows it.
func port(t *testing.T, box sandbox.Sandbox) string {
	t.Helper()
	r, err := box.Execute(t.Context(), `echo "${SSH_CONNECTION##* }"`)
	require.NoError(t, err)
	return r.Output[:len(r.Output)-1]
}

func portOf(address string) string { return address[bytes.LastIndexByte([]byte(address), ':')+1:] }

func (m *Machines) machineOf(t *testing.T, box sandbox.Sandbox) int {
	t.Helper()
	p := port(t, box)
	for i, c := range m.machines {
		if portOf(c.Address) == p {
			return i
		}
	}
	t.Fatal("no machine has port " + p)
	return -1
}

// TestMachinesFailing checks that machines that cannot be used are passed over, told, and tried
// last, and that the error tells of all of them if there is no other.
func TestMachinesFailing(t *testing.T) {
	t.Parallel()
	good := startSSHD(t).config()
	var closed atomic.Bool
	trusted := good.HostKey
	good.HostKey = func(host string, remote net.Addr, key ssh.PublicKey) error {
		if closed.Load() {
			return errors.New("this machine is not to be trusted now")
		}
		return trusted(host, remote, key)
	}
	refusing, stranger := good, good
	refusing.Address = freeAddress(t)
	stranger.Address, stranger.Signer = startSSHD(t).Address, newKey(t, "")
	var log lockedBuffer
	m := newMachines(t, MachinesConfig{Machines: []DialConfig{refusing, stranger, good},
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		box, err := m.New(t.Context(), sandbox.Spec{})
		require.NoError(t, err)
		require.Equal(t, portOf(good.Address), port(t, box))
		require.NoError(t, box.Close())
	}
	told := log.String()
	for _, address := range []string{refusing.Address, stranger.Address} {
		require.Equal(t, 1, bytes.Count([]byte(told), []byte("address="+address)), told)
	}

	closed.Store(true)
	_, err := m.New(t.Context(), sandbox.Spec{})
	require.ErrorContains(t, err, "sshbox: no machine can be used: ")
	for _, c := range m.machines {
		require.ErrorContains(t, err, c.Address)
	}
	var dial *DialError
	require.ErrorAs(t, err, &dial)
	for _, s := range m.slots {
		require.Equal(t, 1, s.free)
	}
	closed.Store(false)
	box, err := m.New(t.Context(), sandbox.Spec{})
	require.NoError(t, err)
	require.NoError(t, box.Close())
}

// TestMachinesMany checks Machines under many callers: never more boxes than slots.
func TestMachinesMany(t *testing.T) {
	t.Parallel()
	c := startSSHD(t).config()
	m := newMachines(t, MachinesConfig{Machines: []DialConfig{c}, Boxes: 2})
	var mu sync.Mutex
	now, most := 0, 0
	count := func(change int) {
		mu.Lock()
		defer mu.Unlock()
		now += change
		most = max(most, now)
	}
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			box, err := m.New(t.Context(), sandbox.Spec{Env: []string{"A=1"}})
			if err != nil {
				t.Error(err)
				return
			}
			count(1)
			r, err := box.Execute(t.Context(), "echo $A")
			if err != nil || r.Output != "1\n" {
				t.Error(r, err)
			}
			count(-1)
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	require.LessOrEqual(t, most, 2)
}

func TestMachinesWrong(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]MachinesConfig{
		"sshbox: MachinesConfig.Machines: it is empty: give at least one machine": {},
		"sshbox: MachinesConfig.Boxes: -1 is negative: leave it out for 1, or give more than 0": {
			Machines: []DialConfig{{Address: "a"}}, Boxes: -1},
		"sshbox: MachinesConfig.Machines[1].Keep: it is set: leave it out": {
			Machines: []DialConfig{{Address: "a"}, {Address: "b", Keep: true}}},
		`sshbox: MachinesConfig.Machines[0].Address: "" is empty: give "host" or "host:port"`: {
			Machines: []DialConfig{{}}},
		"sshbox: MachinesConfig.Machines[1].Address: u@a:22 is in the list twice: leave one out, " +
			"and raise Boxes for more boxes": {Machines: []DialConfig{
			{Address: "a", User: "u"}, {Address: "a:22", User: "u"}}},
	} {
		_, err := NewMachines(c)
		require.EqualError(t, err, want)
	}
	m := newMachines(t, MachinesConfig{Machines: []DialConfig{{Address: "a"}}})
	require.Equal(t, "a machine with an sshd", m.String())
	require.EqualError(t, m.Check(sandbox.Spec{Network: "none"}), `sshbox: Spec.Network: "none": `+
		"a box has its machine's network: leave it out, or use sshbox.Place")
}

// A lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
