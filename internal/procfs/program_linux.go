package procfs

import (
	"bytes"
	"os"
	"strconv"
)

// Program returns the working directory and the environment, as it was when the program was
// executed, of a process; "" and nil where the kernel does not tell.
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
		as(process, look)
	}
	return dir, env
}
