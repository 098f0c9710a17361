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
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations of a pod, beside kube.ServiceLabel, which has the service's name. None of
// them is secret.
const (
	idLabel     = kube.ServiceLabel + ".id"      // a label: labelOf the box's ID
	idNote      = kube.ServiceLabel + ".id"      // an annotation: the box's ID
	madeNote    = kube.ServiceLabel + ".made"    // a made, in JSON, which never changes
	noteNote    = kube.ServiceLabel + ".note"    // the place.Note, in JSON; none during a start
	versionNote = kube.ServiceLabel + ".version" // the Version of the last place.Note
)

// While a box is in a pool, its pod has neither idLabel nor idNote.

// A made says what a box was made from, and by which process.
type made struct {
	Spec    string
	Created time.Time
	Host    string // remotebox.HostID of the process
	PID     int
	Process string // thisProcess of the process
}

// newMade returns the value of madeNote.
func newMade(r place.Request) (string, error) {
	text, err := json.Marshal(made{r.Spec, r.Created, remotebox.HostID(), os.Getpid(), thisProcess})
	return string(text), err
}

// An operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

func annotation(op, name, value string) operation {
	return operation{op, "/metadata/annotations/" + name, value}
}

// patch changes a pod by all operations or by none. If a test among them fails, the error is
// place.ErrConflict.
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

// Note implements place.Place. The API server compares versions, so a note replaces only the note
// that its caller has read.
func (p *Place) Note(ctx context.Context, handle string, n place.Note) error {
	if err := checkEnd(n.PauseAtEnd); err != nil {
		return err
	}
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

// checkEnd returns an error if a box is to be paused at its end.
func checkEnd(pause bool) error {
	if pause {
		return &service.InvalidError{Field: "StartOptions.PauseAtEnd", Reason: "pods cannot be " +
			"paused: leave it out, and the box is removed at its end"}
	}
	return nil
}

// noteOf returns the note of a pod. It returns nil if there is none.
func noteOf(pod *corev1.Pod) (*place.Note, error) {
	text := pod.Annotations[noteNote]
	if text == "" {
		return nil, nil
	}
	n := &place.Note{}
	if err := json.Unmarshal([]byte(text), n); err != nil {
		return nil, err
	}
	for _, t := range []*time.Time{&n.Created, &n.Started, &n.Used, &n.Paused,
		&n.Ends} {
		if !t.IsZero() {
			*t = t.Local()
		}
	}
	return n, nil
}
