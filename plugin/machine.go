package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// A machine describes the box's machine, as far as setups depend on it.
type machine struct {
	// dir is the directory for new plugins; empty if none can be written.
	dir string
	// dirs are the directories in which plugins may be: dir, and those that an earlier program has
	// used and that are read-only now, as in a read-only container.
	dirs           []string
	root           string // SANDSHELL_ROOT: yes or no
	packageManager string // SANDSHELL_PACKAGE_MANAGER
	cache          string // SANDSHELL_CACHE
	path           string // PATH of the programs that the box starts
}

var errNoDirectory = errors.New("none of the directories for plugins can be written: the home " +
	"directory, /var/tmp, /tmp and the directory in which sessions start")

// inspectScript prints these, each followed by a zero byte: "yes" if the user is root, otherwise
// "no"; the package manager; SANDSHELL_CACHE; PATH; the directory for new plugins; and all
// directories in which plugins may be. The directory for new plugins is $1, or the first that can
// be made and written. Directories of other users do not count, because everybody may write to
// /tmp.
const inspectScript = `
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

func inspectMachine(ctx context.Context, box sandbox.Sandbox) (*machine, error) {
	confined, isConfined := sandbox.As[Confined](box)
	dir := ""
	if isConfined {
		var err error
		if dir, err = confined.PluginDir(); err != nil {
			return nil, err
		}
	}
	out, err := runScript(ctx, box, inspectScript, "sh", dir)
	if err != nil {
		return nil, err
	}
	f := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if len(f) < 5 {
		return nil, fmt.Errorf("its sh prints only %q", out)
	}
	m := &machine{
		root: f[0], packageManager: f[1], cache: f[2], path: f[3], dir: f[4], dirs: f[5:],
	}
	if isConfined {
		m.root = "no"
	}
	return m, nil
}

// pathWith returns PATH with dirs at its front.
func (m *machine) pathWith(dirs []string) string {
	var list []string
	for _, dir := range append(slices.Clone(dirs), strings.Split(m.path, ":")...) {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return strings.Join(list, ":")
}
