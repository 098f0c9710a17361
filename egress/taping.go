package egress

import (
	"errors"
	"io"
	"os"
)

// A taping is the body of an answer that is written to a file as it is read.
type taping struct {
	from io.ReadCloser
	to   *os.File
	// ended is called once, when from has ended and the file has all of it.
	ended func() error

	// If write is not nil, what is read goes there, and from through to the file. copied gets one
	// error when all has gone.
	write   *io.PipeWriter
	through *io.PipeReader
	copied  chan error

	done bool
}

var errTape = errors.New("the answer cannot be recorded")

// Read implements io.Reader.
func (t *taping) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	to := io.Writer(t.to)
	if t.write != nil {
		to = t.write
	}
	if _, failed := to.Write(p[:n]); failed != nil && !t.done {
		return n, errors.Join(errTape, failed)
	}
	if err == io.EOF && !t.done {
		if failed := t.finish(); failed != nil {
			return n, errors.Join(errTape, failed)
		}
	}
	return n, err
}

// finish makes the file a part of the tape.
func (t *taping) finish() error {
	t.done = true
	err := t.closeFile()
	if err == nil {
		err = t.ended()
	}
	if err != nil {
		_ = os.Remove(t.to.Name())
	}
	return err
}

func (t *taping) closeFile() error {
	var err error
	if t.write != nil {
		_ = t.write.Close()
		err = <-t.copied
	}
	return errors.Join(err, t.to.Close())
}

// Close implements io.Closer. An answer that was not read to its end is not recorded.
func (t *taping) Close() error {
	if !t.done {
		t.done = true
		_ = t.closeFile()
		_ = os.Remove(t.to.Name())
	}
	return t.from.Close()
}
