//go:build unix

package sandboxtest

import (
	"io/fs"
	"syscall"
)

// blocks returns how many bytes a file takes on its disk.
func blocks(info fs.FileInfo) (int64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Blocks * 512, true
}
