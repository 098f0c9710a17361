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

// A Pool makes boxes ahead, so that Get takes milliseconds. For each box that is taken, it makes
// another in the background. Programs whose pools have the same name, namespace and cluster share
// their boxes: each program keeps the size of its own Pool ready, and Get may return a box that
// another program has made. No box is handed out twice. The methods of a Pool may be called from
// several goroutines.
type Pool struct {
	name    string
	config  Config
	cluster *kube.Cluster
	boxes   *remotebox.Stock[*KubeBox]
	stop    context.CancelFunc
	tasks   sync.WaitGroup
}

// A Handover is what Get adds to a box that was made ahead.
type Handover struct {
	// Env is added to the environment of the main session and of all that is started later,
	// "NAME=value". Unlike Config.Env, it is not in the pod's object in the cluster.
	Env []string
	// Files are copied into the directory where sessions start. Default: none.
	Files fs.FS
}

// NewPool returns a Pool, which starts to make boxes of c until size of them are ready. The name
// must be valid as a label's value. Programs that share a pool must pass the same c. c.Name must be
// empty, because each box needs a name of its own. If the program ends without Close, its
// boxes end by themselves, as New says. Until then other programs may get those that are ready.
func NewPool(c Config, name string, size int) (*Pool, error) {
	if c.Name != "" {
		return nil, fmt.Errorf("kubebox: Config.Name: %q cannot name several boxes: leave it empty",
			c.Name)
	}
	if name == "" {
		return nil, errors.New("kubebox: NewPool: name: it is empty: give one")
	}
	if wrong := content.IsLabelValue(name); len(wrong) > 0 {
		return nil, fmt.Errorf("kubebox: NewPool: name: %q is not a label's value: %s", name,
			strings.Join(wrong, "; "))
	}
	if size < 0 {
		return nil, fmt.Errorf("kubebox: NewPool: size: %d is negative: give 0 or more", size)
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
	p.tasks.Go(func() { cluster.FollowPool(ctx, name, p.drop) })
	return p, nil
}

// make makes a box that any program of the pool may take.
func (p *Pool) make(ctx context.Context) (*KubeBox, error) {
	box, err := New(ctx, p.config)
	if err != nil {
		return nil, err
	}
	ok, err := p.cluster.Claim(ctx, box.PodName(), box.host.pod.UID, kube.Making, kube.Ready)
	if err == nil && !ok {
		err = errors.New("the pod of the new box is gone")
	}
	if err != nil {
		return nil, errors.Join(err, box.discard())
	}
	return box, nil
}

// drop drops the boxes of this program that are gone, or that another program has taken. Its caller
// gives either the pods that are gone, or all pods that are ready; ready is nil in the first case.
func (p *Pool) drop(gone, ready map[types.UID]bool) {
	p.boxes.Drop(func(b *KubeBox) bool {
		if ready != nil {
			return !ready[b.host.pod.UID]
		}
		return gone[b.host.pod.UID]
	}, func(b *KubeBox) {
		b.host.Abandon() // the box is the other program's
		b.Close()
	})
}

// Get returns a box, which the caller must close. It takes a box of the pool that is ready and
// answers, and removes those that have died. If none is ready, Get makes one, as New does. If Get
// fails, it leaves no box behind.
func (p *Pool) Get(ctx context.Context, h Handover) (*KubeBox, error) {
	box, err := remotebox.HandOut(ctx, h.Env, h.Files, p.takeOrMake, (*KubeBox).discard,
		func(box *KubeBox, err error) {
			p.config.Logger.Warn("a box of the pool has died", "pod", box.PodName(), "error", err)
		})
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	return box, nil
}

// takeOrMake takes a box that is ready, or makes one if there is none.
func (p *Pool) takeOrMake(ctx context.Context) (box *KubeBox, ready bool, err error) {
	if box, ready, err = p.takeReady(ctx); box != nil || err != nil {
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

// takeReady takes a box that is ready: if possible one of this program, which is already connected,
// otherwise one of another program. If none is ready, the box is nil.
func (p *Pool) takeReady(ctx context.Context) (box *KubeBox, ready bool, err error) {
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
		if box, err = attach(ctx, p.cluster, b.Name, remotebox.Alone, p.config.Logger); err == nil {
			return box, true, nil
		}
		if removal := p.cluster.RemoveBox(ctx, b.Name); ctx.Err() != nil || removal != nil {
			return nil, false, errors.Join(err, removal)
		}
		p.config.Logger.Warn("a box of the pool has died", "pod", b.Name, "error", err)
	}
	return nil, false, nil
}

// discard deletes the pod, and then closes the box. Close alone would wait for boxd, which may not
// answer.
func (b *KubeBox) discard() error {
	return errors.Join(b.host.pod.Remove(context.Background()), b.Close())
}

// Ready returns how many boxes of this program are ready.
func (p *Pool) Ready() int { return p.boxes.Ready() }

// Close removes the boxes of this program that are ready, and makes no more. Boxes that Get has
// returned stay. Later calls of Get take boxes of other programs, or make one.
func (p *Pool) Close() error {
	p.stop()
	p.tasks.Wait()
	p.boxes.Close()
	p.cluster.Close()
	return nil
}
