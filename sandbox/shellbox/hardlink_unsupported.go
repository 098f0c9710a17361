//go:build !unix

package shellbox

import "io/fs"

type fileID struct{}

func hardLinked(fs.FileInfo) (fileID, bool) { return fileID{}, false }
