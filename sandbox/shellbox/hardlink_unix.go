//go:build unix

package shellbox

import (
	"io/fs"
	"syscall"
)

type fileID struct{ dev, ino uint64 }

// hardLinked returns the identity of a file that has other names too.
func hardLinked(info fs.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, true
}
