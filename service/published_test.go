package service

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPublished connects to the port that the engine has published for a box, before and after a
// pause.
func TestPublished(t *testing.T) {
	t.Parallel()
	base := &url.URL{Scheme: "http", Host: "boxes.localhost"}
	spec := small("small", func(s *Spec) {
		s.Config.Network, s.Config.Publish = "", []int{8000}
		s.Ports = []Port{{"web", 8000}, {"other", 8001}}
	})
	s := open(t, uniqueName(t), func(o *Config) { o.URL = URLs(base) }, spec)
	i := start(t, s, StartOptions{ID: "one"})
	require.Len(t, i.Published, 1)
	box, err := s.Open(t.Context(), "one")
	require.NoError(t, err)
	_, err = box.Background(t.Context(), "while echo greetings | nc -l -p 8000; do :; done")
	require.NoError(t, err)
	answers := func() {
		i, err := s.Get(t.Context(), "one")
		require.NoError(t, err)
		require.Contains(t, i.Published, 8000)
		eventually(t, "the server answers", func() bool {
			conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", i.Published[8000]),
				10*time.Second)
			if err != nil {
				return false
			}
			defer conn.Close()
			got, _ := io.ReadAll(conn)
			return string(got) == "greetings\n"
		})
		urls := toJSON(i).URLs
		require.Equal(t, i.Published[8000], *urls[0].Published)
		require.Nil(t, urls[1].Published)
	}
	answers()
	require.NoError(t, s.Pause(t.Context(), "one"))
	i, err = s.Get(t.Context(), "one")
	require.NoError(t, err)
	require.Nil(t, i.Published)
	require.NoError(t, s.Resume(t.Context(), "one"))
	answers()
}
