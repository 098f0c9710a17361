//go:build !unix

package sandboxtest

import "io/fs"

func blocks(fs.FileInfo) (int64, bool) { return 0, false }
