package programs

import "os"

// OpenPipes opens a pipe for each of a program's standard streams: input, output and error, in this
// order. The program gets theirs; once it runs, these are to be closed here, or the readers of ours
// would never see the end. Closing a file of ours frees a Read or Write of it.
func OpenPipes() (ours, theirs [3]*os.File, err error) {
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:i])
			closeAll(theirs[:i])
			return ours, theirs, err
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
