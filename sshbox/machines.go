package sshbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxspec"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
)

// A MachinesConfig says which machines a Machines has.
type MachinesConfig struct {
	// Machines are the machines, and how to log in to each. At least one is required. Dir and Env
	// of a machine are what a Spec does not say: Spec.Dir replaces Dir, and Spec.Env is added to
	// Env. Keep must not be set, because a box that outlives its program would keep its slot.
	Machines []DialConfig
	// Boxes is how many boxes each machine may have at once. Default: 1.
	Boxes int
	// Logger gets a warning for each machine that could not be used. If Logger is nil, nothing is
	// logged; New returns what the machines said if no machine could be used.
	Logger *slog.Logger
}

// Machines is a list of machines with an sshd as a sandbox.Place. NewMachines makes one. Its boxes
// are those of Dial: they isolate nothing beyond what the account on the machine does, and boxes on
// one machine see each other's files and processes.
//
// Of a Spec it honours User, the name to log in with, Dir and Env. It refuses an image, limits,
// NetworkNone, mounts and labels.
//
// Only the boxes of this Machines count: a program that uses the same machines has its own slots.
type Machines struct {
	machines []DialConfig
	log      *slog.Logger

	mu    sync.Mutex
	slots []slots
	freed chan struct{} // closed, and replaced, when a slot is given back
}

// slots is what is known of one machine.
type slots struct {
	free   int
	failed time.Time // when it last could not be used; zero if it could
}

var _ sandbox.Place = (*Machines)(nil)

// NewMachines returns the place of some machines. It does not connect to them.
func NewMachines(c MachinesConfig) (*Machines, error) {
	fail := func(format string, args ...any) (*Machines, error) {
		return nil, fmt.Errorf("sshbox: MachinesConfig.%w", fmt.Errorf(format, args...))
	}
	switch {
	case len(c.Machines) == 0:
		return fail("Machines: it is empty: give at least one machine")
	case c.Boxes < 0:
		return fail("Boxes: %d is negative: leave it out for 1, or give more than 0", c.Boxes)
	case c.Boxes == 0:
		c.Boxes = 1
	}
	m := &Machines{log: guard.Logger(c.Logger), freed: make(chan struct{})}
	for i, machine := range c.Machines {
		if machine.Keep {
			return fail("Machines[%d].Keep: it is set: leave it out", i)
		}
		full, err := machine.withDefaults()
		if err != nil {
			// "sshbox: DialConfig.Address: …"
			_, wrong, _ := strings.Cut(err.Error(), "DialConfig.")
			return fail("Machines[%d].%s", i, wrong)
		}
		if slices.ContainsFunc(m.machines, func(other DialConfig) bool {
			return other.Address == full.Address && other.User == full.User
		}) {
			return fail("Machines[%d].Address: %s@%s is in the list twice: leave one out, and "+
				"raise Boxes for more boxes", i, full.User, full.Address)
		}
		m.machines = append(m.machines, full)
		m.slots = append(m.slots, slots{free: c.Boxes})
	}
	return m, nil
}

// String returns the number of the machines, as "3 machines with an sshd".
func (m *Machines) String() string {
	if len(m.machines) == 1 {
		return "a machine with an sshd"
	}
	return fmt.Sprintf("%d machines with an sshd", len(m.machines))
}

const onMachine = "it takes isolation, which an account on a machine does not have: leave it " +
	"out, or use sshbox.Place"

var notOnMachines = map[string]string{
	"Image":  "a machine has no image: leave it out, or use sshbox.Place",
	"Memory": onMachine, "CPUs": onMachine, "PIDs": onMachine, "Disk": onMachine,
	"Mounts": onMachine,
	"Labels": "a machine keeps no labels: leave it out",
}

// Check returns the error of New for a Spec that machines cannot honour, or nil. It connects to
// none.
func (m *Machines) Check(s sandbox.Spec) error {
	if err := checkOnMachines(s); err != nil {
		return fmt.Errorf("sshbox: %w", err)
	}
	return nil
}

func checkOnMachines(s sandbox.Spec) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := boxspec.Refuse(s, notOnMachines); err != nil {
		return err
	}
	if s.Network != sandbox.NetworkDefault && s.Network != sandbox.NetworkOpen {
		return boxspec.Unsupported("Network", fmt.Sprintf("%q: a box has its machine's network: "+
			"leave it out, or use sshbox.Place", s.Network))
	}
	_, err := DialConfig{Address: "machine", User: s.User, Dir: s.Dir, Env: s.Env}.withDefaults()
	return boxspec.OfSpec(err)
}

// New makes a box on the machine that has the most free slots. If no slot is free, New waits for
// one until ctx ends. The slot is free again when the box's Close or Detach returns.
//
// If a machine cannot be used, because it does not answer for example, New logs why and takes the
// next. Machines that could not be used within the last minute are taken last. If no machine can be
// used, the error says why for each.
func (m *Machines) New(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	if err := m.Check(s); err != nil {
		return nil, err
	}
	if err := remotebox.CheckContext(ctx); err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	tried := make([]error, len(m.machines))
	for {
		i, err := m.acquire(ctx, tried)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			return nil, boxspec.Making(s,
				fmt.Errorf("sshbox: no machine can be used: %w", errors.Join(tried...)))
		}
		c := m.machines[i]
		boxspec.Set(&c.User, s.User)
		boxspec.Set(&c.Dir, s.Dir)
		c.Env = slices.Concat(c.Env, s.Env)
		box, err := Dial(ctx, c)
		if err == nil {
			m.note(i, time.Time{})
			box.ended = sync.OnceFunc(func() { m.release(i) })
			return box, nil
		}
		m.release(i)
		if ctx.Err() != nil {
			return nil, err
		}
		m.note(i, time.Now())
		m.log.Warn("a machine cannot be used for a box", "address", c.Address, "error", err)
		tried[i] = err
	}
}

// failureMemory is how long after a failure a machine is taken last.
const failureMemory = time.Minute

// acquire takes a slot of the best machine for which tried has no error. If there is no such
// machine, acquire returns -1. If their slots are all taken, it waits until ctx ends.
func (m *Machines) acquire(ctx context.Context, tried []error) (int, error) {
	for {
		m.mu.Lock()
		best, left, freed := -1, false, m.freed
		for i, s := range m.slots {
			if tried[i] != nil {
				continue
			}
			left = true
			if s.free > 0 && (best < 0 || s.better(m.slots[best])) {
				best = i
			}
		}
		if best >= 0 {
			m.slots[best].free--
		}
		m.mu.Unlock()
		if best >= 0 || !left {
			return best, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, fmt.Errorf("sshbox: wait for a free machine: all have their boxes: %w",
				ctxerr.Of(ctx))
		}
	}
}

// better reports whether a box should rather go to the machine of s than to that of other.
func (s slots) better(other slots) bool {
	down := time.Since(s.failed) < failureMemory
	otherDown := time.Since(other.failed) < failureMemory
	if down != otherDown {
		return otherDown
	}
	return s.free > other.free
}

func (m *Machines) release(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots[i].free++
	close(m.freed)
	m.freed = make(chan struct{})
}

// note records when a machine could not be used, or the zero time if it could.
func (m *Machines) note(i int, failed time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots[i].failed = failed
}
