package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// A place describes a box: where plugins are, and what their setups may do.
type place struct {
	// where plugins are set up from now on; "" if no directory can be written
	dir string
	// where plugins may have been set up: dir, and directories that are read-only by now, as in a
	// read-only container
	all            []string
	root           string // SANDSHELL_ROOT: yes or no
	packageManager string
	cache          string // SANDSHELL_CACHE
	path           string // PATH of the programs that the box starts
}

var errNoPlace = errors.New("no directory for it can be written, of the home directory, " +
	"/var/tmp, /tmp and where sessions start")

// placeScript prints, each with a zero byte behind it: yes or no, whether the user is root; the
// package manager; SANDSHELL_CACHE; PATH; the directory for plugins, which is $1 or the first that
// can be made and written; and all directories for plugins that there are. Those that another user
// owns do not count: everybody may write to /tmp.
const placeScript = `
r=no
[ "$(id -u)" != 0 ] || r=yes
m=
for p in apt-get apk dnf yum zypper pacman; do
  if command -v $p >/dev/null; then m=$p; break; fi
done
printf '%s\0' "$r" "$m" "$SANDSHELL_CACHE" "$PATH"
if [ "$1" ]; then
  printf '%s\0' "$1" "$1"
  exit
fi
d= n=$#
for b in "$HOME" /var/tmp /tmp "$PWD"; do
  [ "$b" ] && [ "$b" != / ] || continue
  p=$b/.sandshell/plugins
  [ -z "$d" ] || [ -d "$p" ] || continue
  (umask 077; mkdir -p "$p") && [ -O "$p" ] && [ -O "$b/.sandshell" ] || continue
  if [ -z "$d" ] && true >"$p/.w"; then rm -f "$p/.w"; d=$p; fi
  set -- "$@" "$p"
done 2>/dev/null
shift $n
printf '%s\0' "$d" "$@"
`

func findPlace(ctx context.Context, box sandbox.Sandbox) (*place, error) {
	confined, ok := sandbox.As[Confined](box)
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
	f := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if len(f) < 5 {
		return nil, fmt.Errorf("a shell in it answers %q", out)
	}
	p := &place{root: f[0], packageManager: f[1], cache: f[2], path: f[3], dir: f[4], all: f[5:]}
	if ok {
		p.root = "no"
	}
	return p, nil
}

// pathWith returns PATH with dirs in front.
func (p *place) pathWith(dirs []string) string {
	var list []string
	for _, dir := range append(slices.Clone(dirs), strings.Split(p.path, ":")...) {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return strings.Join(list, ":")
}
