package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/shellquote"
)

// A variables holds what a plugin sets: variables, each "NAME=value", and directories for PATH.
type variables struct{ env, path []string }

// variables returns the plugin's Env, and the variables that its setup.sh has written to the files
// SANDSHELL_ENV and SANDSHELL_PATH beside dir.
func (in *installation) variables(ctx context.Context, p Plugin, dir string) (*variables, error) {
	text, err := in.run(ctx,
		`for f in "$0.env" "$0.path"; do if [ -f "$f" ]; then cat "$f"; fi; printf '\n\0'; done`,
		dir)
	if err != nil {
		return nil, err
	}
	env, rest, _ := strings.Cut(text, "\n\x00")
	paths, _, _ := strings.Cut(rest, "\n\x00")
	v := &variables{env: environ.Merge(p.Env)}
	set, err := parseEnv(env)
	if err != nil {
		return nil, fmt.Errorf("read what setup.sh has written to SANDSHELL_ENV: %w", err)
	}
	v.env = append(v.env, set...)
	for line := range strings.SplitSeq(paths, "\n") {
		switch {
		case line == "":
		case !strings.HasPrefix(line, "/"), strings.ContainsAny(line, ":\x00"):
			return nil, fmt.Errorf("read what setup.sh has written to SANDSHELL_PATH: %q is not "+
				"an absolute path without a colon", line)
		default:
			v.path = append(v.path, line)
		}
	}
	return v, nil
}

// parseEnv parses the text of SANDSHELL_ENV: lines NAME=value; and NAME<<END, lines, END.
func parseEnv(text string) (env []string, err error) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" {
			continue
		}
		kv := line
		if n, end, here := strings.Cut(line, "<<"); here && validVariable.MatchString(n) {
			last := slices.Index(lines[i+1:], end)
			if last < 0 {
				return nil, fmt.Errorf("line %d: the value of %s does not end with a line %q", i+1,
					n, end)
			}
			kv = n + "=" + strings.Join(lines[i+1:i+1+last], "\n")
			i += last + 1
		}
		if err := validateVariable(kv); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		env = append(env, kv)
	}
	return env, nil
}

// exports returns a command that sets the variables in a running shell.
func (v *variables) exports() string {
	var b strings.Builder
	for _, kv := range v.env {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, shellquote.Quote(value))
	}
	for _, dir := range slices.Backward(v.path) {
		fmt.Fprintf(&b, "case :$PATH: in *:%s:*) ;; *) export PATH=%s:$PATH ;; esac\n",
			shellquote.Quote(dir), shellquote.Quote(dir))
	}
	return b.String()
}
