package pytool

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed setup
var setup embed.FS

// Plugin returns the plugin that Call needs in the box: the program that runs functions, and Python
// 3.8 or newer. If the box has no such Python, setup.sh installs it, which needs SANDSHELL_ROOT to
// be "yes" (see package plugin).
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name: "pytool", Files: files("pytool"),
		Check: `"$SANDSHELL_PYTOOL_PYTHON" -B -c 'import os, sys
sys.exit("%d.%d.%d" % sys.version_info[:3] != os.environ["SANDSHELL_PYTOOL_VERSION"])'`,
	}
}

// ensurepip returns a plugin that installs the Python module ensurepip, which virtual environments
// need. Most systems install it with Python.
func ensurepip() plugin.Plugin {
	return plugin.Plugin{Name: "pytool-ensurepip", Files: files("ensurepip"),
		Check: `"$SANDSHELL_PYTOOL_PYTHON" -B -c 'import ensurepip'`}
}

func files(name string) fs.FS {
	dir, err := fs.Sub(setup, "setup/"+name)
	if err != nil {
		panic(err) // the name is a valid path
	}
	return dir
}
