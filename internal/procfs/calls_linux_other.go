//go:build !amd64 && !arm64

package procfs

// native and narrow would have this architecture's further calls, and those of its 32-bit programs,
// which are not known here.
var native, narrow map[int]kind
