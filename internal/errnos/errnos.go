// Package errnos finds Unix's errors in the messages of programs.
package errnos

import (
	"slices"
	"strings"
	"syscall"
)

// texts are Linux's texts of its errors in the C locale, as libc and Go have them, in lower case.
var texts = map[string]syscall.Errno{
	"file exists":                       syscall.EEXIST,
	"is a directory":                    syscall.EISDIR,
	"not a directory":                   syscall.ENOTDIR,
	"directory not empty":               syscall.ENOTEMPTY,
	"no space left on device":           syscall.ENOSPC,
	"disk quota exceeded":               syscall.EDQUOT,
	"read-only file system":             syscall.EROFS,
	"file name too long":                syscall.ENAMETOOLONG,
	"too many levels of symbolic links": syscall.ELOOP,
	"invalid cross-device link":         syscall.EXDEV,
	"device or resource busy":           syscall.EBUSY,
	"text file busy":                    syscall.ETXTBSY,
	"file too large":                    syscall.EFBIG,
	"too many links":                    syscall.EMLINK,
	"too many open files":               syscall.EMFILE,
	"invalid argument":                  syscall.EINVAL,
	"input/output error":                syscall.EIO,
	"operation not supported":           syscall.EOPNOTSUPP,
	"permission denied":                 syscall.EACCES,
	"operation not permitted":           syscall.EPERM,
	"no such file or directory":         syscall.ENOENT,
	"no such device or address":         syscall.ENXIO,
	"broken pipe":                       syscall.EPIPE,
}

// Of returns the error that a message names, the last if there are several; 0 if there is none. The
// error stands between colons, or in ksh's brackets: "cat: f: Permission denied", "sh: f: cannot
// create [Permission denied]", "zsh:1: permission denied: f".
func Of(message string) syscall.Errno {
	for _, piece := range slices.Backward(strings.FieldsFunc(message, func(r rune) bool {
		return strings.ContainsRune(":[]\n", r)
	})) {
		if errno := texts[strings.ToLower(strings.TrimSpace(piece))]; errno != 0 {
			return errno
		}
	}
	return 0
}
