package remotebox

import (
	"strconv"
	"strings"
	"time"
)

// The labels of a container or a pod say who owns it, and what another program needs to know after
// the owner has ended. None of them is secret. In a pod, HostLabel and LingerLabel are annotations,
// because a label's value cannot hold every text there.
const (
	VersionLabel = "sandshell"        // this library's version
	BoxLabel     = "sandshell.box"    // a random text that tells the box from any other
	LingerLabel  = "sandshell.linger" // how long boxd goes on without an owner
	KeepLabel    = "sandshell.keep"   // "true" if the box is kept
	HostLabel    = "sandshell.host"   // HostID of the process that made the box
	PIDLabel     = "sandshell.pid"    // the id of that process
)

// ServiceLabel is a label of boxes that package service has made. The service may start such a box
// again after it has ended, so only the service removes it.
const ServiceLabel = "sandshell-service"

// IsOwnLabel reports whether a label or an annotation is reserved for this library.
func IsOwnLabel(name string) bool {
	return name == VersionLabel || strings.HasPrefix(name, "sandshell.")
}

// Ownership is what labels say of a box.
type Ownership struct {
	Box     string // BoxLabel; "" if this is not a box
	Keep    bool
	Host    string // HostID where the process runs that made the box
	PID     int    // that process's id there; 0 if it is not known
	Service bool   // package service has made the box
}

// ReadOwnership reads the labels of a container or a pod. host is the value of HostLabel.
func ReadOwnership(labels map[string]string, host string) Ownership {
	o := Ownership{Box: labels[BoxLabel], Keep: labels[KeepLabel] != "", Host: host,
		Service: labels[ServiceLabel] != ""}
	o.PID, _ = strconv.Atoi(labels[PIDLabel])
	return o
}

// SameHost reports whether PID is a process id of this machine or container.
func (o Ownership) SameHost() bool { return o.Host == HostID() && o.PID > 0 }

// A Phase says how far a container or a pod has got.
type Phase int

// The phases.
const (
	NotStarted Phase = iota + 1
	Running
	Ended
)

// abandonedAge is the age at which a box that was never started, and whose owner is on another
// machine, counts as abandoned.
const abandonedAge = 10 * time.Minute

// Abandoned reports whether a box is left of an owner that has ended, so that Reap may remove it. A
// running box is never abandoned: it is kept, or ends by itself.
func (o Ownership) Abandoned(p Phase, age time.Duration) bool {
	switch {
	case p == Running, p == Ended && o.Service:
		return false
	case o.SameHost():
		return ProcessGone(o.PID)
	}
	return p == Ended || age >= abandonedAge
}
