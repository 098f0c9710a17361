package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// A place is what there is in a box for plugins.
type place struct {
	dir            string // of all plugins
	root           string // yes or no
	packageManager string
	path           string // PATH, of what the box starts
}

// The directory, given or else the first that can be made and written; yes if the user is root; the package manager; and PATH. A directory
// that another user owns is not used: /tmp is everybody's.
const placeScript = `
d=
if [ "$1" ]; then
  d=$1
else
  for b in "$HOME" /var/tmp /tmp "$PWD"; do
    [ "$b" ] && [ "$b" != / ] || continue
    p=$b/.sandshell/plugins
    if (umask 077; mkdir -p "$p") 2>/dev/null && [ -O "$p" ] && [ -O "$b/.sandshell" ] && : >"$p/.w"; then rm -f "$p/.w"; d=$p; break; fi
  done 2>/dev/null
fi
r=no
[ "$(id -u)" != 0 ] || r=yes
m=
for p in apt-get apk dnf yum zypper pacman; do
  if command -v $p >/dev/null; then m=$p; break; fi
done
printf '%s\0' "$d" "$r" "$m" "$PATH"
`

func findPlace(ctx context.Context, box sandbox.Sandbox) (*place, error) {
	confined, ok := box.(Confined)
	dir := ""
	if ok {
		var err error
		if dir, err = confined.PluginDir(); err != nil {
			return nil, err
		}
	}
	out, err := output(ctx, box, placeScript, "sh", dir)
	if err != nil {
		return nil, err
	}
	f := strings.Split(out, "\x00")
	if len(f) != 5 {
		return nil, fmt.Errorf("a shell in it answers %q", out)
	}
	p := &place{f[0], f[1], f[2], f[3]}
	if p.dir == "" {
		return nil, errors.New("no directory for them can be written, of the home directory, /var/tmp, /tmp and where sessions start")
	}
	if ok {
		p.root = "no"
	}
	return p, nil
}

// pathWith returns PATH with these directories first.
func (p *place) pathWith(dirs []string) string {
	var list []string
	for _, dir := range append(slices.Clone(dirs), strings.Split(p.path, ":")...) {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return strings.Join(list, ":")
}
