package plugin

import (
	"context"
	"errors"
	"strings"
)

// Setups that run side by side each have lists and archives of their own for apt-get, which of these two locks the first keeps others out with an
// error instead of a wait. For the lock on the system's packages it waits when it is told so. Where there is a cache, they begin with what
// that has, by hard links, and leave in it what they have downloaded.

// An apt is what one setup has for apt-get.
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

// apt makes it; the box is root's.
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

// close keeps what was downloaded, if there is a cache, and removes the rest.
func (a *apt) close() error { return a.in.tidy(aptCloseScript, a.dir, a.cache) }
