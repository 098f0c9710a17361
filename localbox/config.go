package localbox

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
)

// A Config says how New makes a LocalBox. The zero value is usable.
type Config struct {
	// Dir is the directory in which sessions, jobs and Runs start. It must exist, and Close leaves
	// it alone. Default: a new temporary directory, which Close removes with everything in it.
	Dir string
	// Shell is the shell of the sessions with its arguments, such as {"dash"} or {"busybox",
	// "ash"}. Default: bash, or sh if there is no bash.
	Shell []string
	// Env is added to this program's environment, each "NAME=value".
	Env []string
	// Grace is how long a command that is being killed may take to end after ^C, and again after
	// SIGTERM. Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt. Default: 30 s.
	StartLimit time.Duration
	// Logger gets events that are in no result, and at debug level each command: see
	// shellbox.Options. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// validate returns an error that names the first field that is wrong.
func (c *Config) validate() error {
	if c.Dir != "" {
		if err := checkDir(c.Dir); err != nil {
			return fmt.Errorf("Config.Dir: %q: %w: give an existing directory, or leave Dir out "+
				"for a temporary one", c.Dir, err)
		}
	}
	if len(c.Shell) > 0 && c.Shell[0] == "" {
		return errors.New("Config.Shell: its first element is empty: give the shell's name, or " +
			"leave Shell out for bash or sh")
	}
	if err := environ.Check("Config.Env", c.Env); err != nil {
		return err
	}
	for _, limit := range []struct {
		field string
		value time.Duration
		zero  string // what 0 stands for
	}{{"Config.Grace", c.Grace, "1s"}, {"Config.StartLimit", c.StartLimit, "30s"}} {
		if limit.value < 0 {
			return fmt.Errorf("%s: %v is negative: 0 stands for %s", limit.field, limit.value,
				limit.zero)
		}
	}
	return nil
}

// checkDir returns an error without the directory's name, which the caller adds.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return syscall.ENOTDIR
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
