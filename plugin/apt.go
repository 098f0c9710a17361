package plugin

import (
	"context"
	"errors"
	"strings"
)

// An apt is a directory with the package lists and archives of one setup's apt-get.
//
// apt-get locks these two directories, and fails at once if another apt-get holds the lock. So each
// setup has a directory of its own. The third lock, for the system's packages, is one for all; the
// configuration makes apt-get wait for it. If there is a cache, the directory begins with hard
// links to its files, and close links new downloads into it.
type apt struct {
	in         *installation
	dir, cache string
}

const aptScript = `
set -e
chmod 755 "$0" # apt-get downloads as _apt
mkdir -p "$0/lists/partial" "$0/archives/partial"
if [ "$1" ]; then
  mkdir -p "$1/lists" "$1/archives"
  cp -al "$1/lists" "$1/archives" "$0/" 2>/dev/null || : # another setup may be replacing files
  find "$1" -maxdepth 1 -name 'setup-*' -mtime +1 -exec rm -rf {} + # left by a setup that was killed
elif [ -d /var/lib/apt/lists ]; then
  find /var/lib/apt/lists -maxdepth 1 -type f ! -name lock -exec cp -p {} "$0/lists/" \;
fi
cat >"$0/apt.conf" <<END
Dir::State::Lists "$0/lists/";
Dir::Cache "$0/";
Dir::Cache::Archives "$0/archives/";
APT::Keep-Downloaded-Packages "true";
Binary::apt::APT::Keep-Downloaded-Packages "true";
DPkg::Lock::Timeout "-1";
END
`

const aptCloseScript = `
if [ "$1" ]; then
  find "$0/lists" "$0/archives" -maxdepth 1 -type f ! -name lock | while IFS= read -r f; do
    k=${f#"$0/"}
    case $k in
    lists/*) ln -f "$f" "$1/$k" ;;
    *.deb) [ -e "$1/$k" ] || ln "$f" "$1/$k" 2>/dev/null || [ -e "$1/$k" ] ;;
    esac
  done
fi
rm -rf "$0"
`

// newApt makes the directory. The box's user must be root.
func (in *installation) newApt(ctx context.Context) (*apt, error) {
	a := &apt{in: in}
	parent := "/var/cache"
	if in.machine.cache != "" {
		a.cache = in.machine.cache + "/apt"
		parent = a.cache
	}
	out, err := in.run(ctx, `mkdir -p "$0" && mktemp -d "$0/setup-XXXXXX"`, parent)
	if err != nil {
		return nil, err
	}
	a.dir = strings.TrimSpace(out)
	if _, err = in.run(ctx, aptScript, a.dir, a.cache); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *apt) config() string { return a.dir + "/apt.conf" }

// close links the downloads into the cache, and removes the directory.
func (a *apt) close() error { return a.in.cleanUp(aptCloseScript, a.dir, a.cache) }
