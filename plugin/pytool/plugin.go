package pytool

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed setup
var setup embed.FS

// Plugin returns what a box has to have: Python 3.8 or newer, which is installed where that is allowed (see package plugin), and the program that runs
// functions.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name: "pytool", Files: files("pytool"),
		Check: `"$SANDSHELL_PYTOOL_PYTHON" -B -c 'import os, sys
sys.exit("%d.%d.%d" % sys.version_info[:3] != os.environ["SANDSHELL_PYTOOL_VERSION"])'`,
	}
}

// ensurepip is what requirements need beside Plugin. Most systems have it with Python.
func ensurepip() plugin.Plugin {
	return plugin.Plugin{Name: "pytool-ensurepip", Files: files("ensurepip"), Check: `"$SANDSHELL_PYTOOL_PYTHON" -B -c 'import ensurepip'`}
}

func files(name string) fs.FS {
	dir, err := fs.Sub(setup, "setup/"+name)
	if err != nil {
		panic(err) // the name is ours, and valid
	}
	return dir
}
