package jupyter

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// If the kernel does not read a message, Run returns after the end of its ctx all the same.
func TestKernelDoesNotRead(t *testing.T) {
	k := &hostileKernel{key: signer("secret"), cell: make(chan struct{}),
		ready: make(chan struct{}), deaf: make(chan struct{})}
	client, err := Connect(t.Context(), k, Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	result, err := client.Run(ctx, strings.Repeat("x", 1<<20))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Nil(t, result)
	require.NoError(t, client.Close())
	close(k.deaf)
	k.once.Do(func() { close(k.cell) })
	k.work.Wait()
}

// If Stream's function blocks, Run returns after the end of its ctx all the same, and Close does.
func TestBlockingStream(t *testing.T) {
	testenv.NeedsAll(t, "Run waits two seconds for the function")
	for _, c := range []struct {
		name string
		end  func(cancel func(), client *Client) error
		want error
	}{
		{"Cancel", func(cancel func(), client *Client) error {
			cancel()
			return nil
		}, context.Canceled},
		{"Close", func(cancel func(), client *Client) error {
			return client.Close()
		}, sandbox.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := &hostileKernel{key: signer("secret"), cell: make(chan struct{}),
				ready: make(chan struct{}),
				says: map[string]func(*hostileKernel, string, io.Writer) error{
					iopub: func(k *hostileKernel, parent string, w io.Writer) error {
						return k.send(w, "stream", parent, text(`{"name":"stdout","text":"A"}`))
					},
				}}
			client, err := Connect(t.Context(), k, Config{})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			called, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			defer close(release)
			go func() {
				_, err := client.Run(ctx, "1", Stream(func(Event) {
					close(called)
					<-release
				}))
				ended <- err
			}()
			<-called
			require.NoError(t, c.end(cancel, client))
			err = <-ended
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, err, exec.ErrWaitDelay)
			require.ErrorContains(t, err, "Stream's function has not returned 2s later")
			require.NoError(t, client.Close())
			k.work.Wait()
		})
	}
}
