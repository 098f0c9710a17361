// Package remotebox is what all boxes with boxd share, whatever boxd runs in: a container, a pod or
// a machine. A [Stock] makes boxes ahead, and [HandOver] gives one its user's environment and
// files. An [SSHConfig] lets people in with their own clients. [HostID] and [ProcessGone] tell
// whether a box's owner is still there.
package remotebox
