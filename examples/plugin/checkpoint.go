package main

import (
	"embed"
	"io"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

// A plugin is a directory with a setup.sh. This one brings two commands, by which an agent can try
// something and take it back.
//
//go:embed all:checkpoint
var files embed.FS

// checkpoint returns the plugin. That is all there is to write: the rest is the shell scripts in
// checkpoint/.
func checkpoint(output io.Writer) (plugin.Plugin, error) {
	dir, err := fs.Sub(files, "checkpoint")
	return plugin.Plugin{
		Name:   "checkpoint",
		Files:  dir,
		Check:  "command -v checkpoint && command -v rollback",
		Output: output, // what setup.sh prints, as it comes
	}, err
}
