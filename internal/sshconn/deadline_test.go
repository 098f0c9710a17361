package sshconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadline(t *testing.T) {
	passed := func(d deadline) bool {
		select {
		case <-d.passed():
			return true
		default:
			return false
		}
	}
	d := makeDeadline()
	require.False(t, passed(d), "before it is set")
	d.set(time.Now().Add(time.Hour))
	hour := d.passed()
	require.False(t, passed(d))
	d.set(time.Now().Add(time.Millisecond)) // this ends a wait that is under way
	soon(t, "the deadline", hour)
	require.True(t, passed(d))

	d.set(time.Time{})
	require.False(t, passed(d), "removed")
	d.set(time.Now().Add(-time.Second))
	require.True(t, passed(d), "in the past")
	d.set(time.Now().Add(-time.Second))
	require.True(t, passed(d), "in the past, again")
	d.set(time.Now().Add(time.Hour))
	require.False(t, passed(d), "moved away after it had passed")
	d.set(time.Time{})
	require.False(t, passed(d))

	// The timer fires while it is moved.
	for range 1000 {
		d.set(time.Now().Add(time.Microsecond))
		d.set(time.Now().Add(time.Hour))
		require.False(t, passed(d))
	}
	d.set(time.Time{}) // or the timer would outlive the test
}
