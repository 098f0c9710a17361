package jupyter

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed box
var files embed.FS

// Plugin returns the plugin: IPython's kernel, and execute_cli. It takes a python3 that has ipykernel and jupyter_client; else, as root where
// there is apt-get, Debian's; else it makes a virtual environment with pip. Libraries such as matplotlib are the caller's to bring: the
// variable SANDSHELL_JUPYTER_PYTHON has the kernel's python.
func Plugin() plugin.Plugin {
	dir, err := fs.Sub(files, "box")
	if err != nil {
		panic(err) // it is not a path
	}
	return plugin.Plugin{Name: "jupyter", Files: dir, Check: "execute_cli --check"}
}
