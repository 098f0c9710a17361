package service

import (
	"fmt"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// TestForkOfKilled kills a process in the middle of Forks. Another one finds the box, and copies
// that are whole or none, and removes what else is left: copies and images.
func TestForkOfKilled(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	s := open(t, name, nil, otherSpecs()[0])
	start(t, s, StartOptions{ID: "cold0", Env: []string{"BOX=cold0"}})
	d := dockertest.Engine(t)
	images := map[string]bool{}
	for when := range 3 {
		p := startOther(t, name, "obeys")
		go p.readOutcomes()
		outcomes := make(chan outcome, 1)
		go func() { outcomes <- p.do("fork", "cold0") }()
		// It is killed when there is an image, a copy, or all of them.
		eventually(t, "the other process forks", func() bool {
			containers, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true,
				Filters: client.Filters{}.Add("label", docker.ServiceLabel+"="+name).
					Add("label", "sandshell.temporary=true")})
			require.NoError(t, err)
			mine := forkImagesOf(t, p.cmd.Process.Pid)
			for _, image := range mine {
				images[image] = true
			}
			return len(mine) > 0 && len(containers.Items) >= []int{0, 1, forks}[when]
		})
		require.NoError(t, p.cmd.Process.Kill())
		p.cmd.Wait()
		<-outcomes
		eventually(t, "each box is whole, and no other container is left", func() bool {
			require.NoError(t, s.round(t.Context()))
			containers, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true,
				Filters: client.Filters{}.Add("label", docker.ServiceLabel+"="+name)})
			require.NoError(t, err)
			page, err := s.Search(t.Context(), Query{})
			require.NoError(t, err)
			return len(page.Items) == len(containers.Items)
		})
		page, err := s.Search(t.Context(), Query{})
		require.NoError(t, err)
		for _, i := range page.Items {
			eventually(t, "the engine has ended its pause", func() bool {
				return status(t, s, i.ID) == Running
			})
			require.Equal(t, "cold0\n", execute(t, s, i.ID, "echo $BOX"))
			if i.ID != "cold0" {
				require.NoError(t, s.Delete(t.Context(), i.ID))
			}
		}
		eventually(t, "the images are gone", func() bool {
			next := open(t, name, nil, otherSpecs()[0]) // the engine may make one late
			require.NoError(t, next.round(t.Context()))
			require.NoError(t, next.Close())
			return len(forkImagesOf(t, p.cmd.Process.Pid)) == 0
		})
	}
	require.Len(t, images, 3)
	require.NoError(t, s.Delete(t.Context(), "cold0"))
}

// forkImagesOf returns the ids of the images of the Forks of a process. An image has no name until
// the engine has given it one.
func forkImagesOf(t *testing.T, pid int) (ids []string) {
	t.Helper()
	list, err := dockertest.Engine(t).ImageList(t.Context(), client.ImageListOptions{
		Filters: client.Filters{}.Add("label", "sandshell.temporary=true").
			Add("label", fmt.Sprint("sandshell.pid=", pid))})
	require.NoError(t, err)
	for _, i := range list.Items {
		ids = append(ids, i.ID)
	}
	return ids
}
