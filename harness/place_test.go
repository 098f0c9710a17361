package harness

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestPlaces runs two samples of the same tasks in containers, on a machine with an sshd, and on
// this machine: tasks that are right and wrong, with points, changed, and with a solution without
// end.
func TestPlaces(t *testing.T) {
	t.Parallel()
	t.Run("containers", func(t *testing.T) {
		dockertest.Engine(t, dockertest.Busybox)
		testPlace(t, sshbox.Place{}, dockertest.Busybox, 2)
	})
	t.Run("machines", func(t *testing.T) {
		server := sshdtest.Start(t)
		m, err := sshbox.NewMachines(sshbox.MachinesConfig{Boxes: 2,
			Machines: []sshbox.DialConfig{{Address: server.Address, User: server.User,
				Signer: server.Key, HostKey: ssh.FixedHostKey(server.HostKey),
				Boxd: sshbox.NoBoxd}}})
		require.NoError(t, err)
		testPlace(t, m, "", 1)
	})
	t.Run("here", func(t *testing.T) { testPlace(t, localbox.Place{}, "", 1) })
}

// testPlace runs tasks in boxes of p, so many at a time. Samples of one task have the same Dir: on
// one machine they must not run at once.
func testPlace(t *testing.T, p sandbox.Place, image string, parallel int) {
	work := filepath.Join(t.TempDir(), "work") // also in a container, where it is made
	task := func(id, command string) Task {
		return Task{ID: id, Image: image, Dir: filepath.Join(work, id), Env: []string{"WHAT=done"},
			Files: []File{{To: "given", Text: "x"}}, Setup: "cp given copied",
			Instruction: "write done into result",
			Solution:    Script{Command: command},
			Check:       Check{Script: Script{Command: "cmp given copied && grep -q done result"}}}
	}
	points, endless := task("points", "echo 0.75 >out"), task("endless", "sleep 1000")
	points.Collect = []string{"out"}
	points.Check = Check{Points: []string{"score"}, Script: Script{Command: "cp out score"}}
	endless.Check = Check{Like: []string{"result"}}
	short(&endless)
	c := Config{Tasks: []Task{task("right/one", `echo "$WHAT" >result`),
		task("wrong", "echo nothing >result"), points, endless}, Agent: Oracle, Name: "oracle",
		Dir: t.TempDir(), Place: p, Samples: 2, Parallel: parallel}
	statuses := func() map[string]Status {
		s, err := Run(t.Context(), c)
		require.NoError(t, err)
		of := map[string]Status{}
		for _, r := range s.Results {
			of[sampleID{r.Task, r.Sample}.String()] = r.Status
			if r.Task == "points" {
				require.Equal(t, map[string]float64{PointsScore: 0.75}, r.Scores, "%+v", r)
				require.Equal(t, 1, r.Files)
				require.Equal(t, c.Tasks[2].Check.Pass > 0, r.Before == Fail)
			}
		}
		return of
	}
	want := map[string]Status{"right/one": Pass, "wrong": Fail, "points": Fail, "endless": Broken,
		"right/one@2": Pass, "wrong@2": Fail, "points@2": Fail, "endless@2": Broken}
	require.Equal(t, want, statuses())
	c.Tasks[2].Check.Pass = 0.5 // another task, which is run again
	want["points"], want["points@2"] = Pass, Pass
	require.Equal(t, want, statuses())
}

// A brokenPlace is a Place whose New does what it says.
type brokenPlace func() (sandbox.Sandbox, error)

func (p brokenPlace) New(context.Context, sandbox.Spec) (sandbox.Sandbox, error) { return p() }
func (p brokenPlace) String() string                                             { return "broken" }

func TestBrokenPlace(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		place  brokenPlace
		status Status
	}{
		"Config.Place panicked: oops": {func() (sandbox.Sandbox, error) { panic("oops") }, Lost},
		"New returned neither a box nor an error": {
			func() (sandbox.Sandbox, error) { return nil, nil }, Lost},
		"away": {func() (sandbox.Sandbox, error) { return nil, errors.New("away") }, Lost},
		"Task.User: no": {func() (sandbox.Sandbox, error) {
			return nil, &sandbox.SpecError{Field: "User", Reason: "no"}
		}, Broken},
	} {
		r := runOne(t, small("task"), Nop, Config{Retries: -1, Place: c.place})
		require.Equal(t, c.status, r.Status)
		require.Contains(t, r.Reason, says)
	}
}

func TestLabelValue(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"a/b.c": "a_b.c", "_a_": "a",
		strings.Repeat("a", 62) + "/b": strings.Repeat("a", 62)} {
		require.Equal(t, want, labelValue(id))
	}
}

// TestPlaceWithoutLimits checks that DefaultLimits hold as far as a place's engine can limit, and
// that a limit that a task sets is an error otherwise.
func TestPlaceWithoutLimits(t *testing.T) {
	t.Parallel()
	place := limitless{sshbox.Place{}}
	c := Config{Tasks: []Task{{ID: "one", Image: dockertest.Busybox, Instruction: "work",
		Check: Check{Script: Script{Command: "true"}}}}, Agent: Oracle, Name: "oracle",
		Dir: t.TempDir(), Place: place}
	got, err := c.withDefaults(t.Context())
	require.NoError(t, err)
	require.Equal(t, Limits{Time: DefaultLimits.Time, Setup: DefaultLimits.Setup,
		CPUs: DefaultLimits.CPUs, Network: "none"}, got.Tasks[0].Limits)
	c.Tasks[0].Limits.Memory = 1 << 30
	_, err = c.withDefaults(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, `"one": Task.Limits.Memory: the engine`)
}

// A limitless place has an engine that limits neither memory nor processes.
type limitless struct{ sshbox.Place }

func (limitless) CheckLimits(_ context.Context, s sandbox.Spec) error {
	field := "Memory"
	switch {
	case s.Memory > 0:
	case s.PIDs > 0:
		field = "PIDs"
	default:
		return nil
	}
	return &sandbox.SpecError{Field: field, Reason: "the engine cannot limit it", Unsupported: true}
}
