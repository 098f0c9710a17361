package archive

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// chmod is root.Chmod. It also works in a container whose runtime answers EPERM to system calls
// that its filter does not know (crun 1.8 with Docker's profile of 2022). root.Chmod uses
// fchmodat2, of Linux 6.6, and does without it only after ENOSYS.
func chmod(root *os.Root, name string, mode fs.FileMode) error {
	err := root.Chmod(name, mode)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	f, openErr := root.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if openErr != nil {
		return openErr
	}
	defer f.Close()
	if os.Chmod("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), mode) != nil {
		return err
	}
	return nil
}
