package pods

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// thisProcess is a text that no other process has, not even a later one with the same id.
var thisProcess = rand.Text()

// foreignAge is the age from which a box of a pool counts as abandoned if its maker is on another
// machine. While the maker runs, it replaces the boxes of its pool after 12 hours.
const foreignAge = 24 * time.Hour

// removeLimit is how long after its deletion was due a pod may exist. After that, its node is
// probably gone, and no kubelet will report the pod's end.
const removeLimit = 30 * time.Second

// list returns the service's pods.
func (p *Place) list(ctx context.Context, selector string) (*corev1.PodList, error) {
	pods, err := p.cluster.Pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the boxes: %w", p.cluster.Explain(err, "list", "pods", ""))
	}
	return pods, nil
}

func (p *Place) selector() string {
	return kube.ServiceLabel + "=" + p.service + "," + kube.BoxLabel
}

// List implements place.Place. It makes one list request, so all records are of the same moment.
func (p *Place) List(ctx context.Context, id string) ([]*place.Record, error) {
	selector := p.selector()
	if id != "" {
		selector += "," + idLabel + "=" + labelOf(id)
	}
	pods, err := p.list(ctx, selector)
	if err != nil {
		return nil, err
	}
	return p.records(pods.Items, id), nil
}

// records returns the Records of pods: of those with an ID, or of all if id is "". While several
// pods are made for one ID, only one Record has the ID, and the makers of the other pods are about
// to remove them. The pod that has a note has claimed the ID.
func (p *Place) records(pods []corev1.Pod, id string) (records []*place.Record) {
	byID := map[string]*place.Record{}
	for i := range pods {
		r := p.record(&pods[i])
		if r == nil {
			continue
		}
		records = append(records, r)
		other := byID[r.ID]
		switch {
		case r.ID == "":
		case other == nil:
			byID[r.ID] = r
		case other.Note == nil && (r.Note != nil || r.Created.Before(other.Created)):
			byID[r.ID], other.ID = r, ""
		default:
			r.ID = ""
		}
	}
	if id == "" {
		return records
	}
	return slices.DeleteFunc(records, func(r *place.Record) bool { return r.ID != id })
}

// record returns the Record of a pod. It returns nil if the pod's annotations are not those of a
// box of the service.
func (p *Place) record(pod *corev1.Pod) *place.Record {
	var m made
	if err := json.Unmarshal([]byte(pod.Annotations[madeNote]), &m); err != nil || m.Spec == "" {
		return nil
	}
	r := &place.Record{Handle: formatHandle(pod.Name, pod.UID), ID: pod.Annotations[idNote],
		Spec: m.Spec, Created: m.Created.Local()}
	var err error
	if r.Note, err = noteOf(pod); err != nil {
		p.log.Warn("the note on a box cannot be read", "pod", pod.Name, "error", err)
		return nil
	}
	if r.Note != nil {
		r.Created = r.Note.Created
	}
	r.Status, r.Detail = statusOf(pod)
	r.Orphan = m.gone(r)
	return r
}

// gone reports whether the maker of a box is certainly gone.
func (m made) gone(r *place.Record) bool {
	switch {
	case m.Process == thisProcess:
		return false
	case m.Host != remotebox.HostID():
		return r.ID == "" && time.Since(r.Created) > foreignAge
	}
	return m.PID == os.Getpid() || remotebox.ProcessGone(m.PID)
}

// statusOf returns the status of a box, from its pod.
func statusOf(pod *corev1.Pod) (status place.Status, detail string) {
	found := kube.Diagnose(pod)
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	running := false
	for _, c := range pod.Status.ContainerStatuses {
		over = over || c.State.Terminated != nil
		running = running || c.State.Running != nil
	}
	switch {
	case pod.DeletionTimestamp != nil && time.Since(pod.DeletionTimestamp.Time) > removeLimit:
		return place.Error, "its pod was deleted, and its node does not say that it is gone: " +
			"delete it"
	case pod.DeletionTimestamp != nil:
		return place.Missing, "it is being removed"
	case over:
		return place.Error, found.Lost + ", and its files with it: delete it"
	case found.Lost != "":
		return place.Unknown, found.Lost
	case running:
		return place.Running, ""
	}
	return place.Starting, fmt.Sprintf("its pod is %s", pod.Status.Phase)
}
