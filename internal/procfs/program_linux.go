package procfs

import (
	"bytes"
	"os"
	"strconv"
)

// Program returns the working directory of a process, and the environment that its program was
// executed with. They are "" and nil if the kernel does not show them.
func Program(pid int) (dir string, env []string) {
	process := "/proc/" + strconv.Itoa(pid)
	look := func() {
		dir, _ = os.Readlink(process + "/cwd")
		content, err := newReader().read(process + "/environ")
		if err != nil {
			return
		}
		env = nil
		for variable := range bytes.SplitSeq(content, []byte{0}) {
			if len(variable) > 0 {
				env = append(env, string(variable))
			}
		}
	}
	if look(); dir == "" {
		asOwnerOf(process, look)
	}
	return dir, env
}
