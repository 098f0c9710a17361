package hostapi

import "errors"

// ErrListens says that another program that uses the box listens on an address: no program of the
// box. The error is syscall.EADDRINUSE too.
var ErrListens = errors.New("another program that uses the box listens there")
