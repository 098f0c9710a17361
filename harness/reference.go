package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A reference is what the reference solution leaves, for Check.Like.
type reference struct {
	// Files is the listing. Its sums depend on Key, which no box gets to know.
	Files map[string]string `json:"files"`
	Key   []byte            `json:"key"`
}

// A references keeps references in files, each for a task and an image.
type references struct {
	dir string
	mu  sync.Mutex
	// making holds a token while somebody makes the reference of a name.
	making map[string]chan struct{}
	failed map[string]verdict // what has failed is not tried for each sample
}

// name returns the name of a task's file.
func (r *runner) referenceName(task *Task) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", r.digest[task.ID], r.imageID[task.ID]))
	return hex.EncodeToString(sum[:12]) + ".json"
}

// lock waits until nobody makes the reference of a name.
func (r *references) lock(ctx context.Context, name string) (unlock func(), err error) {
	r.mu.Lock()
	if r.making == nil {
		r.making, r.failed = map[string]chan struct{}{}, map[string]verdict{}
	}
	token := r.making[name]
	if token == nil {
		token = make(chan struct{}, 1)
		r.making[name] = token
	}
	r.mu.Unlock()
	select {
	case token <- struct{}{}:
		return func() { <-token }, nil
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
}

// load returns the reference of a name, or nil if there is none that can be read.
func (r *references) load(name string) *reference {
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	var ref reference
	if err != nil || json.Unmarshal(data, &ref) != nil || len(ref.Key) == 0 || ref.Files == nil {
		return nil
	}
	return &ref
}

func (r *references) save(name string, ref *reference) error {
	data, err := json.Marshal(ref)
	if err == nil {
		err = os.MkdirAll(r.dir, dirMode)
	}
	if err == nil {
		err = writeWhole(filepath.Join(r.dir, name), data)
	}
	return err
}

// needReference sets t.ahead.reference. If there is none yet for the task and its image, it runs
// the reference solution.
func (t *attempt) needReference(ctx context.Context) *verdict {
	t.times.Reference = t.ahead.referenceSeconds
	if t.ahead.reference != nil {
		return nil
	}
	all, name := t.run.references, t.run.referenceName(&t.task)
	unlock, err := all.lock(ctx, name)
	if err != nil {
		return &verdict{Lost, err.Error()} // ctx has ended
	}
	defer unlock()
	if t.ahead.reference = all.load(name); t.ahead.reference != nil {
		return nil
	}
	if v, failed := all.verdict(name); failed {
		return &v
	}
	ref, failed := t.runReference(ctx)
	if failed != nil {
		if failed.Status == Broken && ctx.Err() == nil {
			all.fail(name, *failed)
		}
		return failed
	}
	t.ahead.reference = ref
	if err := all.save(name, ref); err != nil {
		t.logf("keep the reference: %v", err)
	}
	return nil
}

func (r *references) verdict(name string) (v verdict, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, failed = r.failed[name]
	return v, failed
}

func (r *references) fail(name string, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[name] = v
}

// runReference runs the reference solution in a box of its own, and lists what it leaves.
func (t *attempt) runReference(ctx context.Context) (*reference, *verdict) {
	stop := timed(&t.times.Reference)
	defer func() { stop(); t.ahead.referenceSeconds = t.times.Reference }()
	var parts [2]float64 // not used: Times.Reference is the sum
	w, failed := t.newWorkspace(ctx, &parts[0], &parts[1])
	if failed != nil {
		return nil, failed
	}
	defer t.close(w)
	t.logf("the reference solution, in a box of its own")
	limit := t.task.Limits.Time
	ctx, cancel := ctxerr.WithLimit(ctx, limit, tooLong(limit))
	defer cancel()
	// The exit status does not matter: some of nl2bash's gold commands are a grep that finds
	// nothing.
	_, err := w.script(ctx, t.task.Solution, t.log)
	ref := &reference{Key: newKey()}
	if err == nil {
		ref.Files, err = w.list(ctx, t.task.Check, ref.Key)
	}
	if err == nil {
		return ref, nil
	}
	v, ok := verdictOfBox(err)
	if !ok || v.Status != Lost {
		v = verdictOf(Broken, "the reference solution: %v", err)
	}
	return nil, &v
}
