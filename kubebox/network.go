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

// An OpenNetworkError says that boxes of NetworkNone have a network all the same. Reached says who
// reached whom.
type OpenNetworkError struct{ Reached string }

func (e *OpenNetworkError) Error() string {
	return e.Reached + ": nobody enforces NetworkPolicies in this cluster. A network plugin that " +
		"does (Calico, Cilium, Antrea, kube-router, …) has to be its only one; " +
		"until then take all boxes for connected"
}

// probeLimit is how long a connection may take: what is denied is dropped mostly, and never
// answered.
const probeLimit = 3 * time.Second

// CheckNetwork finds out whether somebody enforces NetworkNone: nil if so, an *OpenNetworkError if
// not, and any other error if that could not be decided. It makes three boxes of c, one with
// NetworkNone and two with NetworkCluster. One of the two connects to the other, at its pod's own
// address, which has to succeed: else it is not the policy that stands between pods. The first
// tries to reach one of them, and to be reached. It takes some seconds, is decisive for the nodes
// that the three were on, and needs to be asked once per cluster, not per box. A plugin that learns
// of a pod late may have let something through before.
func CheckNetwork(ctx context.Context, c Config) (err error) {
	boxes, err := probes(ctx, c)
	defer func() { err = errors.Join(err, boxes.close()) }()
	if err != nil {
		return err
	}
	return boxes.check(ctx)
}

// A probe are the boxes of a check: the first is of NetworkNone, the others of NetworkCluster.
type probe [3]*KubeBox

// probes makes them. Even if it fails, there may be some.
func probes(ctx context.Context, c Config) (*probe, error) {
	var boxes probe
	var errs [len(boxes)]error
	var making sync.WaitGroup
	for i, network := range []Network{NetworkNone, NetworkCluster, NetworkCluster} {
		of := c
		of.Network, of.Name = network, ""
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
			return &OpenNetworkError{fmt.Sprintf("pod %s reached pod %s, and one of them is of "+
				"NetworkNone", t.from.PodName(), t.to.PodName())}
		}
		errs = append(errs, t.err)
	}
	err := errors.Join(errs...)
	if err == nil && !tries[0].reached {
		err = fmt.Errorf("pod %s did not reach pod %s either, though both are of NetworkCluster: "+
			"another NetworkPolicy of the namespace's, or the network itself, is in the way",
			one.PodName(), other.PodName())
	}
	if err != nil {
		return fmt.Errorf("kubebox: check the network: %w", err)
	}
	return nil
}

// unreachable is what the system says in a pod that may not connect, or that the other end refuses.
var unreachable = []error{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	syscall.ETIMEDOUT, syscall.EACCES,
}

// reaches reports whether a box can connect to another. That it could not be tried is an error.
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
	if dialing.Err() == nil && !slices.ContainsFunc(unreachable, func(says error) bool {
		return errors.Is(err, says)
	}) {
		return false, err
	}
	// it is not that one of them has gone, or does not answer
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
