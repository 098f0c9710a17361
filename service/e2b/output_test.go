package e2b

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
)

// TestReadersOfOutput has readers of several speeds read 100 MiB. One that pauses loses nothing;
// one that never reads, and one that never catches up, hold up the others for no longer than
// patience.
func TestReadersOfOutput(t *testing.T) {
	t.Parallel()
	const events, size = 3200, 32 << 10
	tests := map[string]struct {
		pause func(i int) time.Duration // after event i
		lost  bool
	}{
		"pauses": {func(i int) time.Duration {
			if i%1000 == 0 {
				return time.Second
			}
			return 0
		}, false},
		"never reads":     {func(int) time.Duration { return time.Hour }, true},
		"always too slow": {func(int) time.Duration { return 10 * time.Millisecond }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &output{}
				quick, other := o.read(), o.read()
				began := time.Now()
				read := func(r *reader, pause func(i int) time.Duration, done chan<- error) {
					defer r.close()
					for i := 0; ; {
						data, end, wait, err := r.poll()
						switch {
						case err != nil:
							done <- err
							return
						case data != nil:
							time.Sleep(pause(i))
							i++
						case end != nil:
							require.Equal(t, events, i)
							done <- nil
							return
						default:
							<-wait
						}
					}
				}
				first, second := make(chan error, 1), make(chan error, 1)
				go read(quick, func(int) time.Duration { return 0 }, first)
				go read(other, test.pause, second)
				for range events {
					o.add(&e2b.DataEvent{Stdout: make([]byte, size)})
				}
				require.Less(t, time.Since(began), patience+time.Second)
				o.finish(&e2b.EndEvent{}, false)
				require.NoError(t, <-first)
				err := <-second
				if test.lost {
					require.ErrorContains(t, err, "this reader is too slow")
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// TestReaderAlone checks that nobody but a slow reader itself is held up by it: it is waited for.
func TestReaderAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &output{}
		r := o.read()
		go func() {
			for range 100 {
				o.add(&e2b.DataEvent{Stdout: make([]byte, 64<<10)})
			}
			o.finish(&e2b.EndEvent{}, false)
		}()
		for i := 0; ; {
			data, end, wait, err := r.poll()
			require.NoError(t, err)
			switch {
			case data != nil:
				i++
				time.Sleep(time.Minute)
			case end != nil:
				require.Equal(t, 100, i)
				return
			default:
				<-wait
			}
		}
	})
}
