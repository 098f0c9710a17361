package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/go-units"
	"github.com/sandshell/sandshell/sandbox"
)

// specFlags adds the flags that describe the box.
func (c *command) specFlags() *sandbox.Spec {
	s := &sandbox.Spec{}
	c.StringVar(&s.User, "user", "", "the `user` that everything runs as, by name or by id")
	c.StringVar(&s.Dir, "dir", "", "the `directory` in which commands start")
	c.Func("env", "a variable, as `NAME=value`, or as NAME to pass on sandshell's own; may be "+
		"repeated", environment(&s.Env))
	c.Func("memory", "how much memory the box may use, as 512m or 2g; a `size`",
		size(&s.Memory))
	c.Float64Var(&s.CPUs, "cpus", 0, "how many `processors` the box may use, as 1.5")
	c.Int64Var(&s.PIDs, "pids", 0, "how many `processes` and threads the box may have")
	c.Func("disk", "how much the box may write into its image, a `size`", size(&s.Disk))
	c.Func("network", "none, open, or the `network` of the place with that name",
		func(text string) error { s.Network = sandbox.Network(text); return nil })
	c.Func("mount", "a `directory` of the place's machine or a volume, as /source:/target or "+
		"name:/target, with :ro to read only; may be repeated", mount(&s.Mounts))
	c.Func("label", "a `label` of the box, as name=value; may be repeated", label(&s.Labels))
	return s
}

// label returns a function for flag.Func that adds a label.
func label(to *map[string]string) func(string) error {
	return func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return errors.New("give name=value")
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[name] = value
		return nil
	}
}

// environment returns a function for flag.Func that adds a variable.
func environment(to *[]string) func(string) error {
	return func(text string) error {
		name, _, ok := strings.Cut(text, "=")
		if name == "" {
			return errors.New("give NAME=value or NAME")
		}
		if !ok {
			value, set := os.LookupEnv(name)
			if !set {
				return nil // as if it were not set in the box
			}
			text = name + "=" + value
		}
		*to = append(*to, text)
		return nil
	}
}

// size returns a function for flag.Func that sets a number of bytes.
func size(to *int64) func(string) error {
	return func(text string) error {
		n, err := units.RAMInBytes(text)
		if err != nil || n <= 0 {
			return errors.New("give a size such as 512m or 2g")
		}
		*to = n
		return nil
	}
}

// mount returns a function for flag.Func that adds a mount. A relative source begins with a dot,
// and is a directory of this machine.
func mount(to *[]sandbox.Mount) func(string) error {
	return func(text string) error {
		var m sandbox.Mount
		text, m.ReadOnly = strings.CutSuffix(text, ":ro")
		i := strings.LastIndex(text, ":/")
		if i <= 0 {
			return errors.New("give /source:/target or name:/target, with :ro to read only")
		}
		m.Source, m.Target, m.Type = text[:i], text[i+1:], sandbox.Volume
		if strings.HasPrefix(m.Source, ".") {
			source, err := filepath.Abs(m.Source)
			if err != nil {
				return err
			}
			m.Source = source
		}
		if strings.ContainsAny(m.Source, `/\`) {
			m.Type = sandbox.Bind
		}
		*to = append(*to, m)
		return nil
	}
}
