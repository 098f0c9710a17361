package hostapi

import (
	"context"

	"github.com/sandshell/sandshell/sandbox"
)

// A Historian is a shellbox.Host whose directories have histories.
type Historian interface {
	// OpenHistory returns the history of a directory, with the rights of the user, whom user names
	// as shellbox.Program.User does. dir is a path as a shellbox.Copier takes it. ctx governs the
	// opening only. If there is no such directory, the error is fs.ErrNotExist.
	OpenHistory(ctx context.Context, user, dir string, o sandbox.HistoryOptions) (
		sandbox.History, error)
}
