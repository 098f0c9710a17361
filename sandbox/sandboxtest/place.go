package sandboxtest

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// A PlaceTest says what RunPlace needs to know about a place.
type PlaceTest struct {
	Place sandbox.Place
	// Base is a Spec of which the place makes a box that has a POSIX shell. The tests add one field
	// at a time to it.
	Base sandbox.Spec
	// Refuses are the fields of a Spec that the place cannot honour. It must honour all others.
	Refuses []string
	// Samples replace the suite's values and probes of fields, by the field's name.
	Samples map[string]PlaceSample
}

// A PlaceSample is a value of one field of a Spec, and how to see in the box that it holds.
type PlaceSample struct {
	Spec  sandbox.Spec // only the one field is set
	Probe string       // a command; if it is empty, that the box works is enough
	Want  string       // what Probe prints, without the last end of line
}

// placeSamples has a sample for each field of sandbox.Spec. The files of both versions of control
// groups are known.
var placeSamples = map[string]PlaceSample{
	"Image": {Spec: sandbox.Spec{Image: "debian:stable-slim"}},
	"User":  {sandbox.Spec{User: "1234"}, "id -u", "1234"},
	"Dir":   {sandbox.Spec{Dir: "/usr"}, "pwd", "/usr"},
	"Env": {sandbox.Spec{Env: []string{"PLACE_TEST=old", "PLACE_TEST=a $b"}},
		`printf '%s\n' "$PLACE_TEST"`, "a $b"},
	"Memory": {sandbox.Spec{Memory: 256 << 20}, "cat /sys/fs/cgroup/memory.max 2>/dev/null || " +
		"cat /sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456"},
	"CPUs": {sandbox.Spec{CPUs: 0.5}, "cut -d' ' -f1 /sys/fs/cgroup/cpu.max 2>/dev/null || " +
		"cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000"},
	"PIDs": {sandbox.Spec{PIDs: 234}, "cat /sys/fs/cgroup/pids.max 2>/dev/null || " +
		"cat /sys/fs/cgroup/pids/pids.max", "234"},
	"Disk":    {Spec: sandbox.Spec{Disk: 1 << 30}},
	"Network": {sandbox.Spec{Network: sandbox.NetworkNone}, "ls /sys/class/net", "lo"},
	"Mounts": {sandbox.Spec{Mounts: []sandbox.Mount{{Type: sandbox.Tmpfs, Target: "/place-test",
		Size: 1 << 20}}}, "grep -c '^tmpfs /place-test ' /proc/mounts", "1"},
	"Labels": {Spec: sandbox.Spec{Labels: map[string]string{"place-test": "one"}}},
}

// RunPlace checks that the place honours each field of a Spec, or refuses it by an error that names
// the field. The subtests have the names of the fields.
func RunPlace(t *testing.T, p PlaceTest) {
	fields := reflect.TypeFor[sandbox.Spec]()
	for i := range fields.NumField() {
		field := fields.Field(i).Name
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			sample, ok := p.Samples[field]
			if !ok {
				sample, ok = placeSamples[field]
			}
			require.True(t, ok, "the suite has no sample of this field of a Spec: add one")
			for _, refused := range p.Refuses {
				if refused == field {
					p.refuses(t, field, sample)
					return
				}
			}
			p.honours(t, i, sample)
		})
	}
	t.Run("Check", func(t *testing.T) {
		for field, s := range map[string]sandbox.Spec{
			"Dir": {Dir: "relative"}, "Env[1]": {Env: []string{"A=1", "secret"}},
			"Memory": {Memory: -1}, "CPUs": {CPUs: -1}, "PIDs": {PIDs: -1}, "Disk": {Disk: -1},
			"Mounts[0].Target": {Mounts: []sandbox.Mount{{Type: sandbox.Tmpfs, Target: "x"}}},
			"Labels":           {Labels: map[string]string{"sandshell.box": "x"}},
		} {
			_, err := p.Place.New(t.Context(), s)
			requireSpecError(t, err, field, false)
			require.NotContains(t, err.Error(), "secret")
			requireSpecError(t, sandbox.CheckSpec(p.Place, s), field, false)
		}
	})
	t.Run("Context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Place.New(ctx, p.Base)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("String", func(t *testing.T) { require.NotEmpty(t, p.Place.String()) })
}

// refuses checks that New and Check refuse a field that no base has.
func (p PlaceTest) refuses(t *testing.T, field string, sample PlaceSample) {
	box, err := p.Place.New(t.Context(), sample.Spec)
	if err == nil {
		box.Close()
	}
	requireSpecError(t, err, field, true)
	requireSpecError(t, sandbox.CheckSpec(p.Place, sample.Spec), field, true)
}

func requireSpecError(t *testing.T, err error, field string, unsupported bool) {
	t.Helper()
	var wrong *sandbox.SpecError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, unsupported, errors.Is(err, errors.ErrUnsupported), err)
	if name, _, _ := strings.Cut(wrong.Field, "["); name != field {
		require.Equal(t, field, wrong.Field, err)
	}
	require.Contains(t, err.Error(), ": Spec."+wrong.Field+": ")
}

// honours checks that a box that is made with a field has it.
func (p PlaceTest) honours(t *testing.T, index int, sample PlaceSample) {
	s := p.Base
	field := reflect.ValueOf(&s).Elem().Field(index)
	if field.IsZero() { // else the base has it
		field.Set(reflect.ValueOf(sample.Spec).Field(index))
	}
	value := rand.Text()
	if s.Labels != nil {
		s.Labels = map[string]string{"place-test": value}
	}
	require.NoError(t, sandbox.CheckSpec(p.Place, s))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	box, err := p.Place.New(ctx, s)
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	command, want := sample.Probe, sample.Want
	if command == "" {
		command, want = "echo works", "works"
	}
	r, err := box.Execute(ctx, command)
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSuffix(r.Output, "\n"))
	if s.Labels == nil {
		require.NoError(t, box.Close())
		return
	}
	labels, ok := p.Place.(interface {
		RemoveLabelled(ctx context.Context, name, value string) error
	})
	require.True(t, ok, "a place that honours Labels has RemoveLabelled")
	require.NoError(t, labels.RemoveLabelled(ctx, "place-test", "another"))
	_, err = box.Execute(ctx, "true")
	require.NoError(t, err, "RemoveLabelled has removed a box with another value")
	require.NoError(t, labels.RemoveLabelled(ctx, "place-test", value))
	_, err = box.Execute(ctx, "true")
	require.ErrorIs(t, err, sandbox.ErrLost)
}
