package jupyter

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed box
var files embed.FS

// Plugin returns the plugin, which has IPython's kernel and execute_cli. It uses a python3 that has
// ipykernel and jupyter_client. If the box has none, setup.sh installs Debian's packages (as root,
// with apt-get), or else makes a virtual environment with pip. Other plugins install libraries such
// as matplotlib; the variable SANDSHELL_JUPYTER_PYTHON has the path of the kernel's python.
func Plugin() plugin.Plugin {
	dir, err := fs.Sub(files, "box")
	if err != nil {
		panic(err) // "box" is a valid path
	}
	return plugin.Plugin{Name: "jupyter", Files: dir, Check: "execute_cli --check"}
}
