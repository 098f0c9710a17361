package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a pod says about its box, beside kube.ServiceLabel, which names the service. Nothing of it
// is secret.
const (
	// the box's ID, as far as a label can hold it: see labelOf
	idLabel = kube.ServiceLabel + ".id"
	// the same, as it is; neither is there while the box is in a pool
	idNote   = kube.ServiceLabel + ".id"
	madeNote = kube.ServiceLabel + ".made" // a made: it never changes
	// the place.Note, in JSON; "" or none: the box is being started
	noteNote = kube.ServiceLabel + ".note"
	// the number of notes there were: the Version of the last
	versionNote = kube.ServiceLabel + ".version"
)

// A made says what a box was made of and by whom.
type made struct {
	Spec    string
	Created time.Time
	Host    string // as remotebox.HostID has it
	PID     int
	Process string // tells the process from a later one that has the same id
}

// newMade is madeNote's value.
func newMade(r place.Request) (string, error) {
	text, err := json.Marshal(made{r.Spec, r.Created, remotebox.HostID(), os.Getpid(), thisProcess})
	return string(text), err
}

// An operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

func annotation(op, name, value string) operation {
	return operation{op, "/metadata/annotations/" + name, value}
}

// patch changes a pod, all or nothing. The error is place.ErrConflict if what an operation tests
// is not so.
func (p *Place) patch(ctx context.Context, handle string, operations ...operation) error {
	name, _ := parseHandle(handle)
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	_, err = p.cluster.Pods.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("patch pod %s: %w (%v)", name, place.ErrConflict, err)
	}
	return p.found(err, "patch", name)
}

// Note implements place.Place. Only what was made of the newest note takes its place: the API
// server compares their number.
func (p *Place) Note(ctx context.Context, handle string, n place.Note) error {
	old := strconv.FormatInt(n.Version, 10)
	n.Version++
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	err = p.patch(ctx, handle, annotation("test", versionNote, old),
		annotation("add", versionNote, strconv.FormatInt(n.Version, 10)),
		annotation("add", noteNote, string(text)))
	if err != nil {
		return fmt.Errorf("write a note on the box: %w", err)
	}
	return nil
}

// noteOf reads the note of a pod; nil if there is none.
func noteOf(pod *corev1.Pod) (*place.Note, error) {
	text := pod.Annotations[noteNote]
	if text == "" {
		return nil, nil
	}
	n := &place.Note{}
	if err := json.Unmarshal([]byte(text), n); err != nil {
		return nil, err
	}
	for _, t := range []*time.Time{&n.Created, &n.Started, &n.Used, &n.Paused} {
		if !t.IsZero() {
			*t = t.Local() // as the clock tells it
		}
	}
	return n, nil
}
