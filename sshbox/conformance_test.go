package sshbox

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

// TestConformanceSSHBox runs the groups in which an sshd without boxd differs from LocalBox. There
// a script of sandshell's starts programs, another one watches and kills them, input comes over a
// channel, and tar copies files. Where only the shell matters, the tests of LocalBox suffice.
func TestConformanceSSHBox(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "MaxStartups 100")
	conform(t, func(ctx context.Context) (sandbox.Sandbox, error) {
		return Dial(ctx, s.config())
	}, sandboxtest.PlainSSHD(), sandboxtest.Fourths(2),
		testenv.Some("Interaction", "Run", "Files", "Life"))
}

// TestConformanceBoxd runs the groups in which boxd on a machine differs from boxd in a container:
// it is not the init process, its streams come through an sshd, and programs have the environment
// of the login.
func TestConformanceBoxd(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "MaxStartups 100")
	conform(t, func(ctx context.Context) (sandbox.Sandbox, error) {
		box, err := Dial(ctx, s.withBoxd())
		if err == nil && box.BoxID() == "" {
			_, why := box.Boxd()
			err = errors.Join(errors.New(why), box.Close())
		}
		if err != nil {
			return nil, err
		}
		return box, nil
	}, boxdGroups())
}

// boxdGroups leaves to the nightly run the groups that TestConformanceDockerSSHBox runs with the
// same boxd in a container. It also leaves Zoo to it: on this machine boxd finds out which programs
// wait for the terminal by the same code as LocalBox.
func boxdGroups() sandboxtest.Option {
	daily := []string{"Run", "Network", "Life"}
	switch {
	case testenv.Full():
		return sandboxtest.Groups()
	case testenv.All():
		return sandboxtest.Groups(append(daily, "Files", "Interaction", "Output", "Concurrency",
			"User", "Certainty")...)
	}
	return sandboxtest.Groups(daily...)
}

// TestConformanceDockerSSHBox runs the suite in containers: in an image of everyday programs, as
// root and as a user who has sudo; and in an image of busybox alone, as a user without a name and
// without capabilities who can write to /tmp only.
func TestConformanceDockerSSHBox(t *testing.T) {
	t.Parallel()
	testEngine(t)
	// the groups in which boxd differs from LocalBox
	daily := testenv.Some("Output", "Background", "Run", "Files", "Network", "Life", "User")
	for _, c := range []struct {
		name   string
		config Config
		groups sandboxtest.Option
		rare   string // why make test leaves it out
	}{
		{"boxd", Config{Image: testImage}, daily, ""},
		{"boxd-bare", Config{Image: bareImage, User: "12345:54321", ReadOnlyRoot: true,
			CapDrop: []string{"ALL"}}, daily,
			"bash runs in containers every day, busybox ash on this machine"},
		{"boxd-dash", Config{Image: testImage, User: "user", AllowNewPrivileges: true,
			Shell: []string{"dash"}}, daily,
			"bash as root runs in containers every day, dash on this machine"},
		// As this user, boxd sees less of other users' processes than as root.
		{"boxd-user", Config{Image: testImage, User: "1000"},
			sandboxtest.Groups("Zoo", "Certainty"), "LocalBox has the same programs"},
		// The kernel asks boxd about each connect, and one thread forks.
		{"boxd-outward", Config{Image: testImage, Outward: true},
			sandboxtest.Groups("Interaction", "Background", "Run", "Network", "Life", "User"),
			"boxd is the same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.rare != "" {
				testenv.NeedsAll(t, c.rare)
			}
			c.config.Network, c.config.Runtime = "none", os.Getenv("SANDSHELL_TEST_RUNTIME")
			c.config.Logger = testenv.Logger(t)
			conform(t, func(ctx context.Context) (sandbox.Sandbox, error) {
				return New(ctx, c.config)
			}, c.groups, sandboxtest.Fourths(3))
		})
	}
}

// bareImage is an image of busybox alone: no bash, no GNU tar, no /etc/passwd.
const bareImage = "sandshell-busybox:latest"

// conform runs the conformance suite with the boxes that open makes.
func conform(t *testing.T, open func(context.Context) (sandbox.Sandbox, error),
	opts ...sandboxtest.Option) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		// Not the context of t, which ends before Cleanups: the suite makes boxes there too.
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
		defer cancel()
		box, err := open(ctx)
		noError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(opts...)...)
}
