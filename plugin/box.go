package plugin

import "context"

// An Installer is a Sandbox that installs plugins itself, and remembers which it has: each box with
// a Mixin does.
type Installer interface {
	// InitPlugins makes sure that the plugins are in the box: see Install.
	InitPlugins(ctx context.Context, plugins ...Plugin) error
}

// An Environment is a Sandbox to which variables can be added while it is in use: shellbox.Box is
// one, and so is each box that embeds it. In other sandboxes the variables of plugins are in force
// in the main session only, until its shell ends.
type Environment interface {
	// AddEnv adds variables, "NAME=value", to the environment of all that is started from now on.
	// Of two of a name the later counts.
	AddEnv(kv ...string)
}

// Confined is a Sandbox on a machine that is not for plugins to change: SANDSHELL_ROOT is no there.
type Confined interface {
	// PluginDir names the directory that plugins may write. It exists.
	PluginDir() (string, error)
}
