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

// Each box has a directory, which its program keeps locked. It holds the box's temporary files and
// the mark of the box's processes. Reap looks for such directories without a lock.
const (
	statePrefix = "sandshell-local-" // in os.TempDir
	markFile    = "mark"
)

// markPattern matches what shellbox.Box.Mark returns. Any other text, such as an empty one, could
// match processes that are not the box's.
var markPattern = regexp.MustCompile(`^SANDSHELL_SESSION=[A-Z2-7]{26}\.$`)

// Reap removes what is left of this user's boxes whose program has ended without Close, for example
// because it was killed. It removes the boxes' directories in os.TempDir. On Linux it also ends
// processes that have ignored the hangup of their terminal, which it finds by their environment. It
// returns the number of these boxes.
func Reap(ctx context.Context) (removed int, err error) {
	removed, err = tempdir.Reap(statePrefix, func(path string) error {
		mark, err := os.ReadFile(filepath.Join(path, markFile))
		switch {
		case errors.Is(err, fs.ErrNotExist): // the program was killed before it started a command
			return ctxerr.Of(ctx)
		case err != nil:
			return err
		case !markPattern.Match(mark):
			return fmt.Errorf("%s has a wrong mark: remove it", filepath.Join(path, markFile))
		}
		return endMarked(ctx, string(mark))
	})
	if err != nil {
		err = fmt.Errorf("localbox: reap: %w", err)
	}
	return removed, err
}
