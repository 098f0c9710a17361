package tty

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Number returns the number of the terminal f, in the encoding of /proc/PID/stat (new_encode_dev),
// or 0 if it has none. f must not be the master.
func Number(f syscall.Conn) (number int) {
	Control(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		major, minor := unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
		number = int(minor&0xff | major<<8 | minor&^0xff<<12)
		return nil
	})
	return number
}
