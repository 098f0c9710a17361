package localbox

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
)

// A Config says how New makes a LocalBox. The zero value is usable.
type Config struct {
	// Dir is where sessions, jobs and Runs start. It must exist, and Close leaves it. Default: a
	// new temporary directory, which Close removes with all that is in it.
	Dir string
	// Shell is the shell of the sessions with its arguments, such as {"dash"} or {"busybox",
	// "ash"}. Default: bash, or sh if there is no bash.
	Shell []string
	// Env is added to this program's environment, each "NAME=value".
	Env []string
	// Grace is how long a command that is to be killed may take after ^C, and again after SIGTERM.
	// Default: 1 s.
	Grace time.Duration
	// StartLimit bounds the time that a shell takes to its first prompt. Default: 30 s.
	StartLimit time.Duration
	// Logger gets what happens beside the results, and at debug level each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger
}

// validate returns an error that names the first field that is wrong.
func (c *Config) validate() error {
	if c.Dir != "" {
		if err := isDir(c.Dir); err != nil {
			return fmt.Errorf("Config.Dir: %w: make the directory first, or leave Dir empty for a "+
				"temporary one", err)
		}
	}
	if len(c.Shell) > 0 && c.Shell[0] == "" {
		return errors.New("Config.Shell: its first element is empty: give the shell's name, or " +
			"leave Shell nil for bash or sh")
	}
	if err := environ.Check(c.Env); err != nil {
		return fmt.Errorf("Config.Env: %w", err)
	}
	for _, limit := range []struct {
		field string
		value time.Duration
	}{{"Grace", c.Grace}, {"StartLimit", c.StartLimit}} {
		if limit.value < 0 {
			return fmt.Errorf("%s: %v is negative: give more, or 0 for the default",
				"Config."+limit.field, limit.value)
		}
	}
	return nil
}

func isDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	return err
}
