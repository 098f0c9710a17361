package plugin

import "context"

// A sandbox may implement the interfaces below besides sandbox.Sandbox. Install finds them with
// sandbox.As, so also in a sandbox that another one wraps.

// An Installer is a sandbox that installs plugins and remembers which ones it has. Every box of
// this module is one: it embeds a Mixin.
type Installer interface {
	// InitPlugins installs the plugins that the box does not have: see Install.
	InitPlugins(ctx context.Context, plugins ...Plugin) error
}

// An Environment is a sandbox that takes variables while it is in use. shellbox.Box is one, and so
// is each box that embeds it. In a sandbox that is no Environment, the variables of plugins are set
// in the main session only, until its shell ends.
type Environment interface {
	// AddEnv adds variables, each "NAME=value", to the environment of everything that is started
	// later. If a name occurs more than once, the last value counts.
	AddEnv(kv ...string)
}

// A Confined sandbox is on a machine that plugins must not change. SANDSHELL_ROOT is "no" there.
type Confined interface {
	// PluginDir returns the only directory that plugins may write. It exists.
	PluginDir() (string, error)
}
