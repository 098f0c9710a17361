package localbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/tempdir"
)

// A box has a directory, locked by its program: for what is the box's alone, and for the mark of
// its processes. Reap finds both by it.
const (
	statePrefix = "sandshell-local-" // in os.TempDir
	markFile    = "mark"
)

// aMark matches what shellbox.Box.Mark may be. Anything else, such as an empty text, would mark
// other processes.
var aMark = regexp.MustCompile(`^SANDSHELL_SESSION=[A-Z2-7]{26}\.$`)

// Reap removes what is left of boxes of this user whose program has ended without closing them, for
// example because it was killed: processes that go on although their terminal has hung up, and the
// boxes' directories. (Shells and most programs end when the kernel closes their terminals.) It
// finds the directories in os.TempDir and, on Linux, the processes by their environment. It returns
// the number of these boxes.
func Reap(ctx context.Context) (removed int, err error) {
	removed, err = tempdir.Reap(statePrefix, func(path string) error {
		mark, err := os.ReadFile(filepath.Join(path, markFile))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was killed before it had started a command
			return ctxerr.Of(ctx)
		case err != nil:
			return err
		case !aMark.Match(mark):
			return fmt.Errorf("%s is not sandshell's: remove it", filepath.Join(path, markFile))
		}
		return endMarked(ctx, string(mark))
	})
	if err != nil {
		err = fmt.Errorf("localbox: reap: %w", err)
	}
	return removed, err
}
