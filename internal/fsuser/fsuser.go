// Package fsuser looks at files, and at /proc, with another user's rights, and goes on with its
// own.
package fsuser

// IDs are what the rights to files follow from.
type IDs struct {
	UID, GID int
	Groups   []int // the supplementary ones; nil: this process's own
}
