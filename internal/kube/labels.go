package kube

import (
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// The labels and annotations of a pod: see package remotebox. A label's value has at most 63
// letters, digits, "-", "_" and ".", so host and linger are annotations.
const (
	VersionLabel = remotebox.VersionLabel // this library's version, as far as a label can hold it
	BoxLabel     = remotebox.BoxLabel
	KeepLabel    = remotebox.KeepLabel
	PIDLabel     = remotebox.PIDLabel
	hostNote     = remotebox.HostLabel   // an annotation
	lingerNote   = remotebox.LingerLabel // an annotation
	NetworkLabel = "sandshell.network"   // "none": the policy of that name applies
)

// The labels of a pod in a pool.
const (
	PoolLabel  = "sandshell.pool"  // the pool's name
	ClaimLabel = "sandshell.claim" // Making, Ready or Claimed
)

// ServiceLabel is a label of boxes that package service has made.
const ServiceLabel = remotebox.ServiceLabel

// Values of ClaimLabel.
const (
	Making  = "making"  // the box is not ready yet
	Ready   = "ready"   // any program may take the box
	Claimed = "claimed" // a program has taken the box
)

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// labelValue turns any text into a label's value.
func labelValue(text string) string {
	text = notInLabels.ReplaceAllString(text, "-")
	return strings.Trim(text[:min(len(text), 63)], "-_.")
}

// addLabels returns the given labels and annotations with this package's added.
func (p *Pod) addLabels(labels, annotations map[string]string) (l, a map[string]string) {
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
