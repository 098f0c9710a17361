package errnos_test

import (
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/errnos"
	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for message, want := range map[string]syscall.Errno{
		"cat: 'a b': Permission denied\n":             syscall.EACCES,
		"sh: 1: cannot create /x: File exists":        syscall.EEXIST,
		"sh: /x/y: cannot create [Not a directory]\n": syscall.ENOTDIR,
		"zsh:2: file name too long: /x/y":             syscall.ENAMETOOLONG,
		"No space left on device":                     syscall.ENOSPC,
		"open /x: no such file or directory":          syscall.ENOENT,
		"cannot say":                                  0,
		"":                                            0,
	} {
		require.Equal(t, want, errnos.Of(message), message)
	}
}
