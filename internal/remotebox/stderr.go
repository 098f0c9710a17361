package remotebox

import (
	"log/slog"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/headtail"
)

// A Stderr keeps what a process has printed on standard error, on which boxd reports its troubles:
// the head and the tail of a long text. The head matters as much as the tail. When Go's runtime is
// out of threads, it first says so and then prints its stacks. Its methods may be called from
// several goroutines.
type Stderr struct {
	log  *slog.Logger
	mu   sync.Mutex
	text headtail.Buffer
}

// stderrMax is how many bytes a Stderr keeps, and how many of one Write it logs.
const stderrMax = 2 << 10

// NewStderr returns a Stderr that also logs, at debug level. If log is nil, it does not.
func NewStderr(log *slog.Logger) *Stderr {
	return &Stderr{log: log, text: headtail.Buffer{Max: stderrMax}}
}

// Write implements io.Writer. It never fails.
func (s *Stderr) Write(p []byte) (int, error) {
	if s.log != nil {
		s.log.Debug("boxd", "said", strings.TrimSpace(string(p[:min(len(p), stderrMax)])))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// Said returns what has been printed; "" if nothing has.
func (s *Stderr) Said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := s.text.Text()
	return strings.TrimSpace(text)
}
