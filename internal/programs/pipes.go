package programs

import "os"

// OpenPipes opens a pipe for each standard stream of a program: input, output and error, in this
// order. The program gets theirs. Once it runs, the caller must close theirs: otherwise the readers
// of ours would never see the end. When a file of ours is closed, its Reads and Writes return.
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
