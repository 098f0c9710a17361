package sshbox

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

// TestConformanceSSHBox runs what an sshd makes different: programs start by a script of
// sandshell's own, are looked at and killed by another, are typed to over a channel, and files are
// copied by tar. What only the shell decides, LocalBox shows.
func TestConformanceSSHBox(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "MaxStartups 100")
	conform(t, func(ctx context.Context) (sandbox.Sandbox, error) {
		return Dial(ctx, s.config())
	}, sandboxtest.LossyEcho(), sandboxtest.PlainSSHD(),
		sandboxtest.Fourths(2), testenv.Some("Interaction", "Run", "Files", "Life"))
}

// TestConformanceBoxd runs what boxd on a machine makes different from boxd in a container: it is
// nobody's init, its streams come through an sshd, and programs run as the login would have them.
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

// boxdGroups leaves to the nightly run what boxd does in a container as it does here, which is
// tried there; Zoo, too: who waits for a terminal, boxd finds on this machine by what LocalBox
// finds it by.
func boxdGroups() sandboxtest.Option {
	daily := []string{"Run", "Network", "Life"}
	switch {
	case testenv.Full():
		return sandboxtest.Groups()
	case testenv.All():
		return sandboxtest.Groups(append(daily, "Files", "Interaction", "Output", "Concurrency",
			"User")...)
	}
	return sandboxtest.Groups(daily...)
}

// TestConformanceDockerSSHBox runs all of it in each shell: as root and as a user who has sudo, in
// an image of everyday programs, and where there is nothing but busybox, no name, no right and no
// place to write but /tmp.
func TestConformanceDockerSSHBox(t *testing.T) {
	t.Parallel()
	testEngine(t)
	// what boxd makes different
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
		// boxd sees less of others' processes than root's
		{"boxd-user", Config{Image: testImage, User: "1000"}, sandboxtest.Groups("Zoo"),
			"the Zoo of LocalBox has the same programs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.rare != "" {
				testenv.NeedsAll(t, c.rare)
			}
			c.config.Network, c.config.Runtime = "none", os.Getenv("SANDSHELL_TEST_RUNTIME")
			conform(t, func(ctx context.Context) (sandbox.Sandbox, error) {
				return New(ctx, c.config)
			}, c.groups, sandboxtest.Fourths(3))
		})
	}
}

// bareImage has busybox, and nothing else: no bash, no tar, no /etc/passwd.
const bareImage = "sandshell-busybox:latest"

func conform(t *testing.T, open func(context.Context) (sandbox.Sandbox, error),
	opts ...sandboxtest.Option) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		// not t's: the suite makes boxes in Cleanups, too
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		box, err := open(ctx)
		noError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(opts...)...)
}
