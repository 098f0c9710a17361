//go:build !amd64 && !arm64

package procfs

// nativeCalls and calls32 are empty: the other calls of this architecture are unknown.
var nativeCalls, calls32 map[int]callKind
