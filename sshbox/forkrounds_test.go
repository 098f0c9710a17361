package sshbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// TestForkRounds forks boxes, changes the copies, and checks that each copy has what the box had,
// and nothing that another copy has done. Each round goes on with one of the copies or with the
// box. In the end nothing is left. The full count is beside two busy loops.
func TestForkRounds(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	rounds := 4
	base := forkBase(t)
	if testenv.Full() {
		rounds = 200
		for range 2 {
			// It ends with this program, even if that is killed.
			busy := exec.Command("sh", "-c", "while kill -0 $PPID; do :; done 2>/dev/null")
			require.NoError(t, busy.Start())
			t.Cleanup(func() {
				busy.Process.Kill()
				busy.Wait()
			})
		}
	}
	f := &forkRounds{t: t, Rand: rand.New(rand.NewPCG(rand.Uint64(), 0)),
		config: Config{Image: base, Network: "none", Labels: map[string]string{base: ""}}}
	t.Cleanup(func() {
		for _, b := range f.opened {
			b.Close()
		}
	})
	box := f.begin()
	for round := range rounds {
		f.round = round
		if box = f.fork(box); round%50 == 49 { // the engine allows 125 layers
			require.NoError(t, box.Close())
			box = f.begin()
		}
	}
	require.NoError(t, box.Close())
	require.Empty(t, forkImages(t, d, base))
	left, err := d.ContainerList(context.Background(), client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", base)})
	require.NoError(t, err)
	require.Empty(t, left.Items)
}

type forkRounds struct {
	t *testing.T
	*rand.Rand
	config Config
	round  int
	opened []*DockerSSHBox // closed if the test fails
}

// begin makes a box with two sessions.
func (f *forkRounds) begin() *DockerSSHBox {
	box, err := New(f.t.Context(), f.config)
	require.NoError(f.t, err)
	f.opened = []*DockerSSHBox{box}
	expect(f.t, box, "n=0; mkdir /srv; : >/srv/log; alias say='echo $n'", 0, "")
	second, err := box.Open(f.t.Context())
	require.NoError(f.t, err)
	expect(f.t, second, "cd /srv; n=0", 0, "")
	return box
}

// sessions returns both sessions of a box.
func (f *forkRounds) sessions(box *DockerSSHBox) []sandbox.Session {
	second, ok := box.Session("session-1")
	require.True(f.t, ok)
	return []sandbox.Session{box, second}
}

// fork makes copies of a box, and checks them. It returns one of all boxes, and closes the others.
func (f *forkRounds) fork(box *DockerSSHBox) *DockerSSHBox {
	t := f.t
	value := fmt.Sprintf("%d.%d", f.round, f.Uint32())
	removed := f.IntN(2) == 0
	for i, s := range f.sessions(box) {
		expect(t, s, fmt.Sprintf("n='%s %d'; set -- a%[2]d; echo '%[1]s %[2]d' >>/srv/log", value,
			i), 0, "")
	}
	expect(t, box, fmt.Sprintf("head -c %d /dev/urandom >/srv/f%d; cd /tmp; umask 0%d",
		f.IntN(200_000), f.round%5, f.IntN(8)), 0, "")
	if removed {
		expect(t, box, "rm -f /srv/f*", 0, "")
	}
	const ask = "say; echo \"$PWD $1 $(umask)\"; cat /srv/log; " +
		"md5sum /srv/f* 2>/dev/null; true"
	var want []string
	for _, s := range f.sessions(box) {
		want = append(want, text(t, s, ask))
		require.Contains(t, want[len(want)-1], value)
	}
	boxes, err := box.Fork(t.Context(), 1+f.IntN(3))
	require.NoError(t, err, "round %d", f.round)
	all := append(boxes, box)
	f.opened = all
	for i, b := range all {
		for k, s := range f.sessions(b) {
			require.Equal(t, want[k], text(t, s, ask), "round %d, box %d", f.round, i)
		}
		text(t, b, fmt.Sprintf("n=own%d; rm -f /srv/f*; echo own%[1]d >>/srv/own", i))
	}
	for i, b := range all {
		got := text(t, b, "echo $n; cat /srv/own; rm /srv/own")
		require.Equal(t, strings.Repeat(fmt.Sprintf("own%d\n", i), 2), got, "round %d", f.round)
	}
	next := f.IntN(len(all))
	for i, b := range all {
		if i != next {
			require.NoError(t, b.Close())
		}
	}
	return all[next]
}
