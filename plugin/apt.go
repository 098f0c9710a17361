package plugin

import (
	"context"
	"errors"
	"strings"
)

// An apt is the directory of package lists and archives that one setup has for apt-get.
//
// apt-get locks these two directories, and fails at once where another apt-get holds the lock:
// setups that run side by side need one each. The third lock, on the system's packages, is shared;
// apt-get is told to wait for it. Where there is a cache, the directory begins with hard links to
// the cache's files, and new downloads are linked into the cache at the end.
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
  cp -al "$1/lists" "$1/archives" "$0/" 2>/dev/null || : # another may just be replacing some
  find "$1" -maxdepth 1 -name 'setup-*' -mtime +1 -exec rm -rf {} + # of one that was killed
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

// apt makes the directory. The box's user is root.
func (in *installation) apt(ctx context.Context) (*apt, error) {
	a := &apt{in: in}
	parent := "/var/cache"
	if in.place.cache != "" {
		a.cache = in.place.cache + "/apt"
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

// close links the downloads into the cache, if there is one, and removes the directory.
func (a *apt) close() error { return a.in.tidy(aptCloseScript, a.dir, a.cache) }
