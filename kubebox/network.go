package kubebox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// An OpenNetworkError says that nothing enforces NetworkNone in the cluster.
type OpenNetworkError struct {
	Reached string // which pod reached which
}

// Error says what was reached, and how to have NetworkPolicies enforced.
func (e *OpenNetworkError) Error() string {
	return e.Reached + ": nothing enforces NetworkPolicies in this cluster: install one network " +
		"plugin that does (Calico, Cilium, Antrea, kube-router, …) and no other; until then, " +
		"consider all boxes connected"
}

// probeLimit bounds a connection. Most plugins drop what is denied, so no answer ever comes.
const probeLimit = 3 * time.Second

// CheckNetwork finds out whether the cluster enforces NetworkNone. It returns nil if it does, an
// *OpenNetworkError if it does not, and another error if CheckNetwork could not decide.
//
// It makes three boxes of c: one with NetworkNone and two with NetworkCluster. One of the two
// connects to the other, at the pod's own address. That must succeed, because otherwise something
// other than the policy separates pods. It also tries to reach the box with NetworkNone, which in
// turn tries to reach it.
//
// CheckNetwork takes some seconds. Its answer holds for the nodes that the three pods were on. One
// call for each cluster is enough. A network plugin may learn of a pod late, and let traffic
// through until then. CheckNetwork does not see that.
func CheckNetwork(ctx context.Context, c Config) (err error) {
	boxes, err := newProbe(ctx, c)
	defer func() { err = errors.Join(err, boxes.close()) }()
	if err != nil {
		return err
	}
	return boxes.check(ctx)
}

// A probe is the boxes of a check: the first has NetworkNone, the others NetworkCluster.
type probe [3]*KubeBox

// newProbe makes the boxes. If it fails, some of the boxes may exist.
func newProbe(ctx context.Context, c Config) (*probe, error) {
	var boxes probe
	var errs [len(boxes)]error
	var making sync.WaitGroup
	for i, network := range []string{NetworkNone, NetworkCluster, NetworkCluster} {
		of := c
		of.Network, of.Outward, of.Name = network, false, ""
		making.Go(func() { boxes[i], errs[i] = New(ctx, of) })
	}
	making.Wait()
	return &boxes, errors.Join(errs[:]...)
}

func (p *probe) close() error {
	var errs [len(p)]error
	var closing sync.WaitGroup
	for i, b := range p {
		if b != nil {
			closing.Go(func() { errs[i] = b.Close() })
		}
	}
	closing.Wait()
	return errors.Join(errs[:]...)
}

func (p *probe) check(ctx context.Context) error {
	none, one, other := p[0], p[1], p[2]
	tries := []struct {
		from, to *KubeBox
		reached  bool
		err      error
	}{{from: one, to: other}, {from: one, to: none}, {from: none, to: one}}
	var trying sync.WaitGroup
	for i := range tries {
		t := &tries[i]
		trying.Go(func() { t.reached, t.err = reaches(ctx, t.from, t.to) })
	}
	trying.Wait()
	var errs []error
	for _, t := range tries {
		if t.reached && (t.from == none || t.to == none) {
			return &OpenNetworkError{fmt.Sprintf("pod %s reached pod %s, and one of them has "+
				"NetworkNone", t.from.PodName(), t.to.PodName())}
		}
		errs = append(errs, t.err)
	}
	err := errors.Join(errs...)
	if err == nil && !tries[0].reached {
		err = fmt.Errorf("pod %s did not reach pod %s, though both have NetworkCluster: see "+
			"whether another NetworkPolicy of the namespace, or the network itself, is in the way",
			one.PodName(), other.PodName())
	}
	if err != nil {
		return fmt.Errorf("kubebox: check the network: %w", err)
	}
	return nil
}

// unreachable are the system's errors for a connection that is denied or refused.
var unreachable = []error{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	syscall.ETIMEDOUT, syscall.EACCES,
}

// reaches reports whether one box can connect to another. If it could not find out, it returns an
// error.
func reaches(ctx context.Context, from, to *KubeBox) (bool, error) {
	l, err := to.Listen(ctx, "tcp", "0.0.0.0:0")
	if err != nil {
		return false, err
	}
	defer l.Close()
	address, err := to.host.pod.Address(ctx)
	if err != nil {
		return false, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return false, err
	}
	dialing, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	conn, err := from.Dial(dialing, "tcp", net.JoinHostPort(address, port))
	if err == nil {
		return true, conn.Close()
	}
	if ctx.Err() != nil {
		return false, ctxerr.Of(ctx)
	}
	if dialing.Err() == nil && !slices.ContainsFunc(unreachable, func(denied error) bool {
		return errors.Is(err, denied)
	}) {
		return false, err
	}
	// A box that is gone or does not answer would look denied too.
	for _, b := range []*KubeBox{from, to} {
		answering, cancel := context.WithTimeout(ctx, probeLimit)
		_, err := b.Files().Stat(answering, "/")
		cancel()
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
