package harness

import "os"

// What a directory of results holds is the user's alone, whatever the umask: agents' logs and
// recordings may hold secrets.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// createFile makes a file, or empties one that is there.
func createFile(path string) (*os.File, error) {
	return openFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// openFile opens a file of the directory of results, and takes others' rights away from one that
// is there.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, fileMode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(fileMode); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
