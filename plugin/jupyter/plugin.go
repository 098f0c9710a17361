package jupyter

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed box
var files embed.FS

// Plugin returns the plugin: IPython's kernel, and execute_cli. It uses a python3 that has
// ipykernel and jupyter_client. Where there is none, it installs Debian's packages, as root where
// there is apt-get, or else makes a virtual environment with pip. Libraries such as matplotlib are
// for other plugins to install; the variable SANDSHELL_JUPYTER_PYTHON names the kernel's python.
func Plugin() plugin.Plugin {
	dir, err := fs.Sub(files, "box")
	if err != nil {
		panic(err) // it is not a path
	}
	return plugin.Plugin{Name: "jupyter", Files: dir, Check: "execute_cli --check"}
}
