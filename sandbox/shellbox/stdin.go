package shellbox

import (
	"context"
	"fmt"
	"io"
)

// A stdin is a Cmd's standard input. If reading it fails, the program is killed by cancel: the end
// of its input would tell it that it has got all.
type stdin struct {
	r      io.Reader
	cancel context.CancelCauseFunc
}

func (s *stdin) Read(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("Cmd.Stdin panicked: %v", v)
		}
		if err != nil && err != io.EOF {
			s.cancel(fmt.Errorf("read its input: %w", err))
		}
	}()
	return s.r.Read(p)
}
