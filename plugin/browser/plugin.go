package browser

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed setup
var setup embed.FS

// Plugin returns a plugin that makes sure that the box has a Chromium. If the box has none, the
// plugin installs the distribution's package, with fonts. That needs root, a network and, on
// Debian, 520 MB of disk, and it takes a minute or two.
func Plugin() plugin.Plugin {
	files, err := fs.Sub(setup, "setup")
	if err != nil {
		panic(err) // the path is a constant
	}
	return plugin.Plugin{
		Name:  "browser",
		Files: files,
		// The check shows that the program links and begins to run. Rendering would take a second.
		Check: findProgram + `[ "$program" ] && "$program" --version`,
	}
}

// findProgram is shell code that sets program to the name of the Chromium in the box, or to "". The
// headless shell comes first: it starts in a third of the time of a full browser, and does not ask
// its maker's servers for accounts, updates, dictionaries and help with forms.
const findProgram = `program=; for p in chromium-headless-shell chrome-headless-shell headless-shell chromium chromium-browser google-chrome google-chrome-stable; do ` +
	`if command -v $p >/dev/null 2>&1; then program=$p; break; fi; done; `
