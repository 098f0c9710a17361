package harness

import "os"

// The modes of a directory of results and its files, whatever the umask. Logs and recordings of
// agents may hold secrets.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// createFile creates a file, or truncates one that exists.
func createFile(path string) (*os.File, error) {
	return openFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// openFile opens a file of the directory of results. If the file exists, openFile sets its mode.
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
