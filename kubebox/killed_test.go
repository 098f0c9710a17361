package kubebox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// actAs is an environment variable. If it has a kubeconfig and a namespace, this program makes two
// boxes, prints their ids, and waits to be killed.
const actAs = "SANDSHELL_TEST_ACT_AS"

func act() {
	kubeconfig, namespace, _ := strings.Cut(os.Getenv(actAs), "\n")
	for _, keep := range []bool{false, true} {
		b, err := New(context.Background(), Config{Cluster: Cluster{Kubeconfig: kubeconfig,
			Namespace: namespace}, Image: testImage, Linger: 2 * time.Second, Keep: keep})
		if err == nil {
			_, err = b.Execute(context.Background(), `X=1; echo begun; sleep 4; echo done`,
				sandbox.Yield(200*time.Millisecond))
		}
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(b.PodUID())
	}
	select {}
}

// TestKilledProgram kills a program that has two boxes. The one that is not kept ends by itself,
// and Reap removes it. The one that is kept goes on, and another program takes it over.
func TestKilledProgram(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actAs+"="+c.Kubeconfig+"\n"+c.Namespace)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	var ids []string
	for range 2 {
		line, err := said.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "error") {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatal(line, err)
		}
		ids = append(ids, strings.TrimSpace(line))
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	b, err := c.Attach(t.Context(), ids[1])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	r, err := b.Wait(t.Context())
	require.NoError(t, err)
	require.Contains(t, r.Output, "done\n")
	does(t, b, "echo $X", "1\n")

	ended := func() bool {
		list, err := c.List(t.Context())
		require.NoError(t, err)
		for _, b := range list {
			if b.ID == ids[0] {
				return b.State == "Succeeded"
			}
		}
		return false
	}
	require.Eventually(t, ended, testenv.Limit, 100*time.Millisecond)
	n, err := c.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = c.Attach(t.Context(), ids[0])
	require.ErrorIs(t, err, sandbox.ErrLost)

	// Attach also takes the pod's name.
	require.NoError(t, b.Detach())
	again, err := c.Attach(t.Context(), b.PodName())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	does(t, again, "echo $X", "1\n")
}
