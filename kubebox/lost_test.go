package kubebox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// loses calls lose, which ends the pod of a box, while a command runs, and checks the cause.
func loses(t *testing.T, b *KubeBox, lose func(), cause sandbox.LostCause) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	_, err := b.Execute(ctx, "sleep 600", sandbox.Yield(50*time.Millisecond))
	require.NoError(t, err)
	lose()
	_, err = b.Wait(ctx)
	var lost *sandbox.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, cause, lost.Cause, lost.Reason)
	require.NoError(t, b.Close())
}

func TestLost(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	core := kubetest.Shared(t).Core(t)
	at := func(b *KubeBox) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: b.PodName(), Namespace: c.Namespace}
	}
	t.Run("deleted", func(t *testing.T) {
		b := newBox(t, Config{Cluster: c, Name: "mine"})
		loses(t, b, func() {
			require.NoError(t, core.Pods(c.Namespace).Delete(t.Context(), b.PodName(),
				metav1.DeleteOptions{}))
		}, sandbox.LostRemoved)

		// Another pod with the same name is another box.
		other := newBox(t, Config{Cluster: c, Name: "mine"})
		_, err := c.Attach(t.Context(), b.PodUID())
		require.ErrorIs(t, err, sandbox.ErrLost)
		does(t, other, "echo here", "here\n")
	})
	t.Run("evicted", func(t *testing.T) {
		b := newBox(t, Config{Cluster: c})
		loses(t, b, func() {
			require.NoError(t, core.Pods(c.Namespace).EvictV1(t.Context(),
				&policyv1.Eviction{ObjectMeta: at(b)}))
		}, sandbox.LostEvicted)
	})
	t.Run("time up", func(t *testing.T) {
		b := newBox(t, Config{Cluster: c})
		loses(t, b, func() {
			pod, err := core.Pods(c.Namespace).Get(t.Context(), b.PodName(), metav1.GetOptions{})
			require.NoError(t, err)
			pod.Spec.ActiveDeadlineSeconds = new(int64(1))
			_, err = core.Pods(c.Namespace).Update(t.Context(), pod, metav1.UpdateOptions{})
			require.NoError(t, err)
		}, sandbox.LostRemoved)
	})
	t.Run("out of memory", func(t *testing.T) {
		podsAreHere(t)
		// The kernel scales a score by a thousandth of the limit's pages, rounded down
		// (oom_badness). With a limit of few thousand pages, such as 96 MiB, a program that uses
		// much memory could still come before boxd.
		b := newBox(t, Config{Cluster: c, Memory: 25_000 * 4096})
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		// The kernel kills the process with the highest score, which is never boxd's. The test
		// changes the scores from outside, which lasts until boxd starts its next program.
		r, err := b.Execute(ctx, `python3 -c 'input(); x = bytearray(300 << 20)'`)
		require.NoError(t, err)
		require.Equal(t, sandbox.Waiting, r.State)
		box := boxd(t, b)
		pod, err := os.Readlink(filepath.Join(box, "ns", "pid"))
		require.NoError(t, err)
		processes, err := filepath.Glob("/proc/[0-9]*")
		require.NoError(t, err)
		for _, p := range processes {
			// The box's shell is one of them.
			if of, _ := os.Readlink(filepath.Join(p, "ns", "pid")); of == pod {
				require.NoError(t, os.WriteFile(filepath.Join(p, "oom_score_adj"), []byte("0"), 0))
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(box, "oom_score_adj"), []byte("1000"), 0))
		r, err = b.Input(ctx, "\n")
		var lost *sandbox.LostError
		require.ErrorAs(t, err, &lost, "%+v", r)
		require.Equal(t, sandbox.LostMemory, lost.Cause, lost.Reason)
		require.NoError(t, b.Close())
	})
	t.Run("ended", func(t *testing.T) {
		b := newBox(t, Config{Cluster: c})
		loses(t, b, func() {
			_, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"kill", "-TERM", "1"}})
			if err != nil {
				require.ErrorIs(t, err, sandbox.ErrLost)
			}
		}, sandbox.LostEnded)
	})
}
