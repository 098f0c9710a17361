package kubebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
)

// A Pool has boxes ready that were made ahead, so that getting one takes milliseconds. It makes
// another in the background for each that is taken. Programs whose pools have the same name,
// namespace and cluster share their boxes: each keeps its size of them ready, and each may get any.
// No two ever get one box. Its methods may be called from several goroutines.
type Pool struct {
	name    string
	config  Config
	cluster *kube.Cluster
	boxes   *remotebox.Stock[*KubeBox]
	stop    context.CancelFunc
	follows sync.WaitGroup
}

// A Handover is what the one who gets a box of a Pool brings along.
type Handover struct {
	// Env is added to the environment of the main session and of all that is started later,
	// "NAME=value". The cluster does not see it.
	Env []string
	// Files are copied into the directory where sessions start. Default: none.
	Files fs.FS
}

// NewPool starts to make boxes of c, until size of them are ready. name is a label's value;
// programs that share a pool have to have the same c. c.Name has to be empty: each box has a name
// of its own. A program that ends without Close leaves its boxes to end by themselves, as New says;
// those that are ready another program may get until then.
func NewPool(c Config, name string, size int) (*Pool, error) {
	if c.Name != "" {
		return nil, fmt.Errorf("kubebox: the Config of a pool has the Name %q: leave it empty, "+
			"one name cannot be for several boxes", c.Name)
	}
	if wrong := content.IsLabelValue(name); name == "" || len(wrong) > 0 {
		return nil, fmt.Errorf("kubebox: a pool's name cannot be %q: %s", name,
			strings.Join(wrong, "; "))
	}
	if size < 0 {
		return nil, fmt.Errorf("kubebox: a pool of %d boxes", size)
	}
	full, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	cluster, err := full.open()
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	full.pool = name
	ctx, stop := context.WithCancel(context.Background())
	p := &Pool{name: name, config: full, cluster: cluster, stop: stop}
	p.boxes = remotebox.NewStock(remotebox.StockConfig[*KubeBox]{Size: size, Logger: full.Logger,
		Make:  p.make,
		Close: func(b *KubeBox) { b.discard() }})
	p.follows.Go(func() { cluster.FollowPool(ctx, name, p.drop) })
	return p, nil
}

// make makes a box for whoever is first.
func (p *Pool) make(ctx context.Context) (*KubeBox, error) {
	box, err := New(ctx, p.config)
	if err != nil {
		return nil, err
	}
	ok, err := p.cluster.Claim(ctx, box.PodName(), box.host.pod.UID, kube.Making, kube.Ready)
	if err == nil && !ok {
		err = errors.New("its pod is gone")
	}
	if err != nil {
		return nil, errors.Join(err, box.discard())
	}
	return box, nil
}

// drop forgets boxes that another program has taken, or that are gone.
func (p *Pool) drop(gone, ready map[types.UID]bool) {
	p.boxes.Drop(func(b *KubeBox) bool {
		if ready != nil {
			return !ready[b.host.pod.UID]
		}
		return gone[b.host.pod.UID]
	}, func(b *KubeBox) {
		b.host.Abandon() // it is that program's
		b.Close()
	})
}

// Get hands out a box, which is the caller's to close. It takes one that is ready and answers, this
// program's or another's; one that has died meanwhile is removed. If there is none, Get makes one,
// as New does. When Get fails, it leaves no box behind.
func (p *Pool) Get(ctx context.Context, h Handover) (*KubeBox, error) {
	box, err := remotebox.Take(ctx, h.Env, h.Files, p.takeOrMake, (*KubeBox).discard,
		func(box *KubeBox, err error) {
			p.config.Logger.Warn("a box of the pool has died", "pod", box.PodName(), "error", err)
		})
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	return box, nil
}

// takeOrMake takes a box that is ready. If there is none, it makes one.
func (p *Pool) takeOrMake(ctx context.Context) (box *KubeBox, ready bool, err error) {
	if box, ready, err = p.take(ctx); box != nil || err != nil {
		return box, ready, err
	}
	if box, err = p.config.box(ctx); err != nil {
		return nil, false, err
	}
	if _, err = p.cluster.Claim(ctx, box.PodName(), box.host.pod.UID, kube.Making,
		kube.Claimed); err != nil {
		return nil, false, errors.Join(err, box.discard())
	}
	return box, false, nil
}

// take takes a box that is ready: this program's, whose connection is there already, else
// another's. It returns nil if there is none.
func (p *Pool) take(ctx context.Context) (box *KubeBox, ready bool, err error) {
	for {
		box, ok := p.boxes.Take()
		if !ok {
			break
		}
		claimed, err := p.cluster.Claim(ctx, box.PodName(), box.host.pod.UID, kube.Ready,
			kube.Claimed)
		switch {
		case err != nil:
			return nil, false, errors.Join(err, box.discard())
		case claimed:
			return box, true, nil
		}
		box.host.Abandon() // another program was faster
		box.Close()
	}
	list, err := p.cluster.List(ctx, kube.PoolLabel+"="+p.name+","+kube.ClaimLabel+"="+kube.Ready)
	if err != nil {
		return nil, false, err
	}
	for _, b := range list {
		if b.State != "Running" {
			continue
		}
		claimed, err := p.cluster.Claim(ctx, b.Name, b.UID, kube.Ready, kube.Claimed)
		if err != nil {
			return nil, false, err
		}
		if !claimed {
			continue
		}
		if box, err = attach(ctx, p.cluster, b.Name, p.config.Logger); err == nil {
			return box, true, nil
		}
		if removal := p.cluster.RemoveBox(ctx, b.Name); ctx.Err() != nil || removal != nil {
			return nil, false, errors.Join(err, removal)
		}
		p.config.Logger.Warn("a box of the pool has died", "pod", b.Name, "error", err)
	}
	return nil, false, nil
}

// discard deletes the pod first, because boxd in it may not answer, and then closes the box.
func (b *KubeBox) discard() error {
	return errors.Join(b.host.pod.Remove(context.Background()), b.Close())
}

// Ready is how many boxes of this program's are ready.
func (p *Pool) Ready() int { return p.boxes.Ready() }

// Close removes the boxes of this program's that are ready, and makes no more. Those that were
// handed out stay. Get then takes those of other programs, and makes each box itself.
func (p *Pool) Close() error {
	p.stop()
	p.follows.Wait()
	p.boxes.Close()
	p.cluster.Close()
	return nil
}
