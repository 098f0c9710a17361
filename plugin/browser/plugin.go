package browser

import (
	"embed"
	"io/fs"

	"github.com/sandshell/sandshell/plugin"
)

//go:embed setup
var setup embed.FS

// Plugin makes sure that there is a Chromium in the box. Where there is none, it installs the
// distribution's package, with a font. That needs root, a network and, on Debian, 520 MB of disk,
// and takes a minute or two.
func Plugin() plugin.Plugin {
	files, err := fs.Sub(setup, "setup")
	if err != nil {
		panic(err) // a constant path
	}
	return plugin.Plugin{
		Name:  "browser",
		Files: files,
		// It links and begins to run. Whether it renders would take a second to try.
		Check: findProgram + `[ "$program" ] && "$program" --version`,
	}
}

// findProgram sets program to Chromium's name. The headless shell comes first: it starts in a third
// of the time, and has none of a full browser's services, which ask its maker's servers for
// accounts, updates, dictionaries and help with forms.
const findProgram = `program=; for p in chromium-headless-shell chrome-headless-shell headless-shell chromium chromium-browser google-chrome google-chrome-stable; do ` +
	`if command -v $p >/dev/null 2>&1; then program=$p; break; fi; done; `
