package kubebox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// An OpenNetworkError says that boxes of NetworkNone have a network all the same. Reached says who reached whom.
type OpenNetworkError struct{ Reached string }

func (e *OpenNetworkError) Error() string {
	return e.Reached + ": nobody enforces NetworkPolicies in this cluster. A network plugin that does (Calico, Cilium, Antrea, kube-router, …) has to be its only one; " +
		"until then take all boxes for connected"
}

// probeLimit is how long a connection may take: what is denied is dropped mostly, and never answered.
const probeLimit = 3 * time.Second

// CheckNetwork finds out whether somebody enforces NetworkNone: nil if so, an *OpenNetworkError if not. It makes two boxes of c, one with NetworkNone and one with
// NetworkCluster, and has each listen and the other connect to it, at the pods' own addresses: what gets through, gets through. It takes some seconds, is
// decisive for the nodes that the two were on, and needs to be asked once per cluster, not per box.
func CheckNetwork(ctx context.Context, c Config) (err error) {
	var boxes [2]*KubeBox
	defer func() {
		for _, b := range boxes {
			if b != nil {
				err = errors.Join(err, b.Close())
			}
		}
	}()
	for i, network := range []Network{NetworkNone, NetworkCluster} {
		c.Network, c.Name = network, ""
		if boxes[i], err = New(ctx, c); err != nil {
			return err
		}
	}
	for i, from := range boxes {
		to := boxes[1-i]
		reached, err := reaches(ctx, from, to)
		if err != nil {
			return fmt.Errorf("kubebox: check the network: %w", err)
		}
		if reached {
			return &OpenNetworkError{fmt.Sprintf("pod %s reached pod %s, and one of them is of NetworkNone", from.PodName(), to.PodName())}
		}
	}
	return nil
}

// reaches reports whether a box can connect to another.
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
	if err != nil {
		return false, ctx.Err()
	}
	return true, conn.Close()
}
