// Package errnos finds Unix's errors in the messages of programs.
package errnos

import (
	"slices"
	"strings"
	"syscall"
)

// texts are the texts of Linux's errors in the C locale, in lower case. libc and Go have the same.
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

// Of returns the error that a message names, or 0. If it names several, Of returns the last. The
// error's text is between colons, or in brackets, as ksh writes it: "cat: f: Permission denied",
// "sh: f: cannot create [Permission denied]", "zsh:1: permission denied: f".
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
