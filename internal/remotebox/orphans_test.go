package remotebox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrphans checks that an orphan is forgotten a day after Add if an engine does not have it, and
// after a week even if no engine answers.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Orphans
		require.False(t, o.Has("a"))
		o.Forget(nil)
		o.Add("a")
		o.Add("b")
		o.Remove("b")
		o.Forget(nil) // it may be on another engine
		require.True(t, o.Has("a"))
		require.False(t, o.Has("b"))

		time.Sleep(orphanAge + time.Second)
		o.Forget(map[string]bool{"a": true})
		require.True(t, o.Has("a"))
		o.Forget(map[string]bool{})
		require.False(t, o.Has("a"))

		o.Add("gone with its cluster")
		time.Sleep(orphanLimit + time.Second)
		o.Add("c")
		require.Len(t, o.since, 1)
	})
}
