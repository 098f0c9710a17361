// Package fsuser runs a function with another user's rights to files and to /proc.
package fsuser

// IDs determine the rights to files.
type IDs struct {
	UID, GID int
	Groups   []int // the supplementary groups; nil: this process's own
}
