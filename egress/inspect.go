package egress

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// inspectScript makes the directory of name $1, in $2 if that is given. If $3 is given, it may be
// there already. It prints, each followed by a zero byte: the directory, the routes of IPv4 and of
// IPv6, the box's root certificates, those of the variables $4 and on that are set, as NAME=value,
// nothing, and then the file "old" of a directory that was there.
const inspectScript = `
n=$1 only=$2 key=$3 d=
shift 3
adopt() { [ -n "$key" ] && [ -d "$1/$n" ] && [ ! -L "$1/$n" ] && [ -O "$1/$n" ] && d=$1/$n; }
make() { (umask 022; mkdir "$1/$n") 2>/dev/null && d=$1/$n; }
for f in adopt make; do
  for b in ${only:+"$only"} ${only:-/tmp /var/tmp /dev/shm "$HOME" "$PWD"}; do
    [ -n "$d" ] || $f "$b"
  done
done
printf '%s\0' "$d"
for f in route ipv6_route; do
  if [ -r /proc/net/route ]; then [ ! -r /proc/net/$f ] || head -n 50 /proc/net/$f; else echo ?; fi
  printf '\0'
done
for f in "$SSL_CERT_FILE" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
  /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
  if [ -f "$f" ] && [ -r "$f" ]; then cat "$f"; break; fi
done
printf '\0'
for v do
  eval "[ -z \"\${$v+x}\" ] || printf '%s=%s\0' $v \"\$$v\""
done
printf '\0'
[ -z "$key" ] || [ ! -f "$d/old" ] || cat "$d/old"
`

// inspectMax is the most that the script may print: some hundred certificates and variables.
const inspectMax = 8 << 20

// An inspection is what a box says about itself.
type inspection struct {
	dir    string
	routes []string // to anywhere but itself
	roots  []byte   // PEM
	env    []string // those of our variables that are set
	// Of the box before an Exit with the same key has changed it:
	adopted bool
	old     []string // as env
	dirs    []string // that the Exit has made
}

// inspect looks at a box, and makes the Exit's directory. variables are those that the Exit may
// set.
func inspect(ctx context.Context, box sandbox.Sandbox, key attachKey,
	variables []string) (*inspection, error) {
	only := ""
	if b, ok := sandbox.As[confined](box); ok {
		var err error
		if only, err = b.PluginDir(); err != nil {
			return nil, err
		}
	}
	name, may := key.dirName(), ""
	if key != nil {
		may = "1"
	}
	out, err := run(ctx, box, inspectScript, slices.Concat([]string{name, only, may},
		variables)...)
	if err != nil {
		return nil, fmt.Errorf("look at the box: %w", err)
	}
	f := strings.Split(out, "\x00")
	if len(f) < 5 {
		return nil, fmt.Errorf("look at the box: its sh prints only %.100q", out)
	}
	if !path.IsAbs(f[0]) || path.Base(f[0]) != name { // Close removes it
		return nil, errors.New("no directory of the box can be written: mount a tmpfs on /tmp")
	}
	in := &inspection{dir: f[0], routes: append(routes4(f[1]), routes6(f[2])...)}
	var rest []string
	in.env, rest = cutFields(f[4:])
	in.old, rest = cutFields(rest)
	in.dirs, _ = cutFields(rest)
	if in.adopted = len(rest) > 0; !in.adopted {
		in.old = in.env
	}
	// The box's programs may have written that.
	in.old = slices.DeleteFunc(slices.Clone(in.old), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(variables, name)
	})
	in.dirs = slices.DeleteFunc(in.dirs, func(dir string) bool { return !path.IsAbs(dir) })
	for text := []byte(f[3]); ; {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return in, nil
		}
		if block.Type == "CERTIFICATE" {
			in.roots = append(in.roots, pem.EncodeToMemory(&pem.Block{Type: block.Type,
				Bytes: block.Bytes})...)
		}
	}
}

// cutFields returns the fields before the first empty one, and those after it.
func cutFields(f []string) (before, after []string) {
	i := slices.Index(f, "")
	if i < 0 {
		return f, nil
	}
	return f[:i:i], f[i+1:]
}

// oldText returns the file "old": what an inspection that adopts the directory reads.
func (in *inspection) oldText(dirs []string) []byte {
	var text strings.Builder
	for _, fields := range [][]string{in.old, dirs} {
		for _, f := range fields {
			text.WriteString(f + "\x00")
		}
		text.WriteString("\x00")
	}
	return []byte(text.String())
}

// has reports whether all variables are set already.
func (in *inspection) has(env []string) bool {
	return !slices.ContainsFunc(env, func(kv string) bool { return !slices.Contains(in.env, kv) })
}

// run runs one of this package's scripts in the box, and returns what it prints.
func run(ctx context.Context, box sandbox.Sandbox, script string, args ...string) (string, error) {
	ctx, out, stop := bounded.Capture(ctx, "what the box's sh prints", inspectMax)
	defer stop()
	var errs lastlines.Writer
	code, err := box.Run(ctx, &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"},
		args...), Stdout: out, Stderr: &errs})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d: %s", code, errs.String())
	}
	return out.String(), err
}
