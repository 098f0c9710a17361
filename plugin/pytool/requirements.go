package pytool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
)

const noPip = 3 // NO_PIP of requirements.py

// Prepare makes the virtual environment for the Requirements if the box does not have it. The first
// Call does so too.
func (t *Tool) Prepare(ctx context.Context, box sandbox.Sandbox) error {
	requirements := t.sortedRequirements()
	if len(requirements) == 0 {
		return nil
	}
	for _, r := range requirements {
		if strings.ContainsAny(r, "\n\r\x00") {
			return fmt.Errorf("install the requirements of %s: Tool.Requirements: %q has several "+
				"lines: give each line as an element", t.Function, r)
		}
	}
	out := newCapture(maxOutput, nil)
	code, err := t.makeVenv(ctx, box, requirements, out)
	if err == nil && code == noPip {
		if err := plugin.Install(ctx, box, ensurepip()); err != nil {
			return fmt.Errorf("install the requirements of %s: %w", t.Function, err)
		}
		out = newCapture(maxOutput, nil)
		code, err = t.makeVenv(ctx, box, requirements, out)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("install the requirements of %s: %w", t.Function, ctxerr.Of(ctx))
	case err != nil:
		return fmt.Errorf("install the requirements of %s: %w", t.Function, err)
	case code == noPlugin:
		return fmt.Errorf("install the requirements of %s: %w", t.Function, errNoPlugin)
	case code != 0:
		failed := &RequirementsError{Requirements: requirements, ExitCode: code}
		failed.Output, failed.Omitted = out.text()
		return failed
	}
	return nil
}

const (
	noPlugin   = 4
	venvScript = `[ "$SANDSHELL_PYTOOL" ] || exit 4
exec "$SANDSHELL_PYTOOL_PYTHON" -B "$SANDSHELL_PYTOOL/requirements.py" "$SANDSHELL_PYTOOL_VERSION-$1"`
)

func (t *Tool) makeVenv(ctx context.Context, box sandbox.Sandbox, requirements []string,
	out *capture) (int, error) {
	request, err := json.Marshal(map[string][]string{"requirements": requirements,
		"pip_args": append([]string{}, t.PipArgs...)})
	if err != nil {
		return -1, err
	}
	return box.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", venvScript, "pytool", t.key()}, Env: environ.Merge(t.Env),
		Stdin: bytes.NewReader(request), Stdout: out, Stderr: out,
	})
}

// sortedRequirements returns the requirements, sorted, each once.
func (n *Needs) sortedRequirements() []string {
	var list []string
	for _, r := range n.Requirements {
		if r = strings.TrimSpace(strings.TrimPrefix(r, "\ufeff")); r != "" {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// key returns the name of the virtual environment, and "" if there are no Requirements.
func (n *Needs) key() string {
	requirements := n.sortedRequirements()
	if len(requirements) == 0 {
		return ""
	}
	return hash(requirements, n.PipArgs)
}

// hash returns a hash of lists of texts.
func hash(lists ...[]string) string {
	sum := sha256.New()
	for _, list := range lists {
		fmt.Fprintf(sum, "%q\n", list)
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}
