package remotebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"unicode"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// CheckContext returns why nothing may be begun with ctx, or nil.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return errors.New("the context is nil")
	}
	return ctxerr.Of(ctx)
}

// CheckImage finds the usual mistakes in an image's name. Engines answer them as if a registry had
// no such image.
func CheckImage(field, image string) error {
	base, _, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], "@")
	base, _, _ = strings.Cut(base, ":")
	if strings.ContainsFunc(image, unicode.IsSpace) || base != strings.ToLower(base) {
		return fmt.Errorf("%s: %q is no image's name: write it in lower case, without spaces",
			field, image)
	}
	return nil
}

// CheckShell returns an error if a shell with its arguments has an empty name.
func CheckShell(field string, shell []string) error {
	if len(shell) > 0 && shell[0] == "" {
		return fmt.Errorf("%s: its first element is empty: give the shell's name, or leave it out "+
			"for bash or sh", field)
	}
	return nil
}

// ExplainStart returns the error of a box whose main session did not start. If the directory or the
// shell of its Config is the reason, ExplainStart adds the field's name and what to do. config is
// the name of the type, and place is where the box is, as in "the image".
func ExplainStart(config, place, dir string, shell []string, err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, exec.ErrNotFound) && len(shell) > 0:
		return fmt.Errorf("%s.Shell: %w: install it in %s, or leave Shell out", config, err, place)
	case dir != "" && errors.As(err, &at) && strings.HasPrefix(at.Op, "chdir"):
		return fmt.Errorf("%s.Dir: %w: give a directory that is in %s, and that the user may enter",
			config, err, place)
	}
	return err
}
