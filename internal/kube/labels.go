package kube

import (
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// The labels and annotations of a pod say who owns it, and what another program needs to know after
// the owner has ended. None of them is secret. What need not be a label's value, which is of 63
// letters, digits, "-", "_" and ".", is an annotation.
const (
	VersionLabel = "sandshell"         // this library's version, as far as a label can hold it
	BoxLabel     = "sandshell.box"     // tells the box from any other
	KeepLabel    = "sandshell.keep"    // "true" if the box is kept
	PIDLabel     = "sandshell.pid"     // the process that made the pod,
	hostNote     = "sandshell.host"    // and where that is: an annotation
	lingerNote   = "sandshell.linger"  // Spec.Linger: an annotation
	NetworkLabel = "sandshell.network" // "none": the policy of that name applies
)

// The labels of a pod in a pool: which pool, and whether somebody has it.
const (
	PoolLabel  = "sandshell.pool"
	ClaimLabel = "sandshell.claim"
)

// ServiceLabel is a label of boxes that package service has made. One of them that has ended is
// still somebody's: only the service removes it.
const ServiceLabel = "sandshell-service"

// What ClaimLabel says.
const (
	Making  = "making" // it is not ready yet
	Ready   = "ready"  // for whoever is first
	Claimed = "claimed"
)

// Ours reports whether a label or an annotation is one of this library's.
func Ours(name string) bool { return name == VersionLabel || strings.HasPrefix(name, "sandshell.") }

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// labelValue makes a label's value of any text.
func labelValue(text string) string {
	text = notInLabels.ReplaceAllString(text, "-")
	return strings.Trim(text[:min(len(text), 63)], "-_.")
}

// mark returns the pod's labels and annotations: ours and the user's.
func (p *Pod) mark(labels, annotations map[string]string) (l, a map[string]string) {
	l, a = map[string]string{}, map[string]string{}
	maps.Copy(l, labels)
	maps.Copy(a, annotations)
	l[VersionLabel] = labelValue(remotebox.Version())
	l[BoxLabel] = p.Box
	l[PIDLabel] = strconv.Itoa(os.Getpid())
	if p.Keep {
		l[KeepLabel] = "true"
	}
	a[hostNote] = remotebox.HostID()
	a[lingerNote] = p.Linger.String()
	return l, a
}
