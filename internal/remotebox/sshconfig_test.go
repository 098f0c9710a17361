package remotebox

import (
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/crypto/ssh"
)

// silent is a box that does not answer.
type silent struct{ asked chan struct{} }

func (s silent) AddGuest(ctx context.Context, _ ssh.PublicKey) (ssh.PublicKey, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestPathOfSilentBox checks that a box that does not answer blocks neither Close nor a Path whose
// context has ended.
func TestPathOfSilentBox(t *testing.T) {
	var g SSHConfig
	box := silent{make(chan struct{})}
	path := func(ctx context.Context) chan error {
		got := make(chan error, 1)
		go func() { _, err := g.Path(ctx, box, "name", []string{"true"}); got <- err }()
		return got
	}
	first, endFirst := context.WithCancel(t.Context())
	asking := path(first)
	<-box.asked
	second, endSecond := context.WithCancel(t.Context())
	waiting := path(second)
	endSecond()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("a Path that waits for another: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	third := path(ctx)
	endFirst()
	if err := <-asking; !errors.Is(err, context.Canceled) {
		t.Errorf("a Path that asks the box: %v", err)
	}
	<-box.asked // the third takes its turn
	g.Close()
	if _, err := g.Path(t.Context(), box, "name", nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	end()
	if err := <-third; !errors.Is(err, context.Canceled) {
		t.Errorf("a Path that asks during Close: %v", err)
	}
}
