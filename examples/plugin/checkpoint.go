package main

import (
	"embed"
	"io"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

// files is the directory of the plugin. Its setup.sh installs two commands, with which an agent can
// try something and take it back.
//
//go:embed all:checkpoint
var files embed.FS

// checkpoint returns the plugin. output gets what setup.sh prints, as it comes.
func checkpoint(output io.Writer) (plugin.Plugin, error) {
	dir, err := fs.Sub(files, "checkpoint")
	return plugin.Plugin{
		Name:   "checkpoint",
		Files:  dir,
		Check:  "command -v checkpoint && command -v rollback",
		Output: output,
	}, err
}
