package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/sandbox"
)

// Programs that do not get the variables (env -i, sudo, docker exec) look at files of the system.
// If the box is this Exit's alone and its user may write them, Attach puts the authority there, and
// Close takes it out.

// systemScript prints, each followed by a zero byte, kinds of files and their paths: only those
// that the user may replace, and that are the box's own and not mounted from elsewhere. A path that
// is not there yet is to be made. "java" has two paths, and "dir" is a directory that the script
// has made. "nojava" is a Java that cannot be changed.
const systemScript = `
root=$(stat -c %d / 2>/dev/null) || exit 0
own() { [ -w "${1%/*}" ] && [ "$(stat -c %d "${1%/*}")" = "$root" ]; }
tell() { if own "$2"; then printf '%s\0' "$@"; else return 1; fi; }
make() { # DIR: makes it, and says so
  [ ! -d "$1" ] || return 0
  case $1 in /*/*) make "${1%/*}" || return 1 ;; esac
  own "$1" && mkdir "$1" 2>/dev/null && printf 'dir\0%s\0' "$1"
}
some=
for f in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
  /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
  [ ! -f "$f" ] || { some=1; tell bundle "$(readlink -f "$f")"; }
done
[ -n "$some" ] || { make /etc/ssl/certs && tell bundle /etc/ssl/certs/ca-certificates.crt; }
[ ! -d /etc/ssl/certs ] || {
  n=0
  while f=/etc/ssl/certs/$1.$n; [ -e "$f" ] && [ "$(cat "$f")" != "$3" ]; do n=$((n + 1)); done
  tell authority "/etc/ssl/certs/$1.$n"
}
[ ! -d /etc/apt/apt.conf.d ] || tell apt /etc/apt/apt.conf.d/95sandshell-egress-$2
port=$2
policy() { make "$1" && tell chromium "$1/sandshell-egress-$port.json"; }
for p in chromium chromium-browser chromium-headless-shell; do
  ! command -v $p >/dev/null || { policy /etc/chromium/policies/managed; break; }
done
! command -v google-chrome >/dev/null || policy /etc/opt/chrome/policies/managed
java=$(command -v java) && java=$(readlink -f "$java") && java=${java%/bin/java}
for h in "$java" "$JAVA_HOME" "$JAVA_HOME/jre" /usr/lib/jvm/* /usr/lib/jvm/*/jre /opt/java/* \
  /usr/local/openjdk-*; do
  c=$h/lib/security/cacerts n=$h/conf/net.properties
  [ -e "$n" ] || n=$h/lib/net.properties # of Java 8
  [ -e "$c" ] || continue
  c=$(readlink -f "$c") n=$(readlink -f "$n")
  own "$n" && [ -f "$n" ] && tell java "$c" "$n" || printf 'nojava\0%s\0' "$h"
done
:
`

// A systemFile is a file of the box's system with something of ours in it.
type systemFile struct {
	name    string
	made    bool // it was not there before, or was of a program that was killed
	old     []byte
	changed []byte
	// take returns what somebody else has made of the file meanwhile, without what is ours. If take
	// is nil, all of the file is ours, and such a file stays as it is.
	take func(now []byte) []byte
}

// A system is what Attach has changed in a box's system.
type system struct {
	files []systemFile
	dirs  []string // that were made
	java  bool     // every Java of the box finds the proxy and trusts the authority
}

// mostSystem is the longest file that is changed.
const mostSystem = 8 << 20

// changeSystem changes the system's files. address is the proxy's: no two Exits of a box have the
// same, so what is named for it and is there already is of a program that was killed. What cannot
// be changed stays: programs have the variables.
func (x *Exit) changeSystem(ctx context.Context, s *settlement, address string) error {
	host, port, _ := strings.Cut(address, ":")
	out, err := run(ctx, s.box, systemScript, x.ca.hash(), port,
		strings.TrimSpace(string(x.ca.pem())))
	if err != nil {
		return fmt.Errorf("look for the files of certificates: %w", err)
	}
	f := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	seen := map[string]bool{}
	change := func(name string, take, put func([]byte) []byte) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		return s.change(ctx, name, take, put)
	}
	whole := func(text []byte) func([]byte) []byte {
		return func([]byte) []byte { return text }
	}
	for len(f) > 1 && err == nil {
		kind, name := f[0], f[1]
		f = f[2:]
		switch kind {
		case "dir":
			s.system.dirs = append(s.system.dirs, name)
		case "bundle":
			err = change(name, x.ca.outOf, func(old []byte) []byte {
				return slices.Concat(bytes.TrimSuffix(old, []byte("\n")), newline(old),
					x.ca.pem())
			})
		case "authority":
			err = change(name, nil, whole(x.ca.pem()))
		case "apt":
			err = change(name, nil, whole(aptConf("http://"+address)))
		case "chromium":
			policy, _ := json.Marshal(map[string][]string{ // strings can be encoded
				"CACertificates": {base64.StdEncoding.EncodeToString(x.ca.cert.Raw)}})
			err = change(name, nil, whole(policy))
		case "java":
			if len(f) == 0 {
				return errors.New("look for the files of certificates: a path is missing")
			}
			properties := f[0]
			f = f[1:]
			err = change(name, x.ca.outOfStore, x.ca.intoStore)
			if err == nil {
				proxy := newJavaProxy(host, port)
				err = change(properties, proxy.outOf, proxy.into)
			}
			if err == nil {
				s.system.java = true
			}
		case "nojava":
			defer func() { s.system.java = false }()
		}
		if unchangeable(err) {
			if kind == "java" {
				defer func() { s.system.java = false }()
			}
			err = nil
		}
	}
	return err
}

// errUnknownStore is why a file of certificates is left alone.
var errUnknownStore = errors.New("the file has another format")

// unchangeable reports whether a file could not be changed because of what it is.
func unchangeable(err error) bool {
	for _, why := range []error{fs.ErrPermission, syscall.EROFS, syscall.EBUSY, errUnknownStore,
		fs.ErrNotExist, syscall.EISDIR} {
		if errors.Is(err, why) {
			return true
		}
	}
	return errors.As(err, new(*sandbox.TooLargeError))
}

// change replaces one file. If put returns nil, the error is errUnknownStore.
func (s *settlement) change(ctx context.Context, name string, take,
	put func([]byte) []byte) error {
	old, err := s.box.Files().ReadFile(ctx, name, mostSystem)
	made := errors.Is(err, fs.ErrNotExist)
	if err != nil && !made {
		return err
	}
	if take != nil {
		if rest := take(old); rest != nil && !bytes.Equal(rest, old) {
			// An Exit with the same key has changed it.
			s.system.files = append(s.system.files, systemFile{name, len(rest) == 0, rest, old,
				take})
			return nil
		}
	}
	changed := put(old)
	if changed == nil {
		return errUnknownStore
	}
	if bytes.Equal(changed, old) {
		s.system.files = append(s.system.files, systemFile{name, true, nil, changed, take})
		return nil
	}
	// It is noted first: WriteFile may fail after it has written.
	s.system.files = append(s.system.files, systemFile{name, made || take == nil, old, changed,
		take})
	err = s.box.Files().WriteFile(ctx, name, changed, 0o644)
	if unchangeable(err) {
		s.system.files = s.system.files[:len(s.system.files)-1]
	}
	return err
}

// restore undoes all changes of the system, the last one first. A file that somebody has changed
// meanwhile keeps those changes.
func (s *system) restore(ctx context.Context, files sandbox.Files) error {
	var errs []error
	for _, f := range slices.Backward(s.files) {
		if err := f.restore(ctx, files); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, d := range slices.Backward(s.dirs) {
		_ = files.Remove(ctx, d) // others may have put files there
	}
	return errors.Join(errs...)
}

func (f *systemFile) restore(ctx context.Context, files sandbox.Files) error {
	now, err := files.ReadFile(ctx, f.name, mostSystem)
	switch {
	case err != nil:
		return err
	case bytes.Equal(now, f.changed) && f.made:
		return files.Remove(ctx, f.name)
	case bytes.Equal(now, f.changed):
		return files.WriteFile(ctx, f.name, f.old, 0o644)
	case f.take == nil:
		return nil
	}
	rest := f.take(now)
	if rest == nil || bytes.Equal(rest, now) {
		return nil
	}
	return files.WriteFile(ctx, f.name, rest, 0o644)
}

// aptConf returns the settings of apt. apt asks a proxy of the variables only if it has none here.
func aptConf(proxy string) []byte {
	return fmt.Appendf(nil, "Acquire::http::Proxy %[1]q;\nAcquire::https::Proxy %[1]q;\n", proxy)
}

// A javaProxy is lines of Java's net.properties, which has the defaults of system properties.
type javaProxy struct{ begin, lines, end string }

func newJavaProxy(host, port string) javaProxy {
	return javaProxy{fmt.Sprintf("# sandshell egress by port %s\n", port), fmt.Sprintf(
		"http.proxyHost=%[1]s\nhttp.proxyPort=%[2]s\nhttps.proxyHost=%[1]s\nhttps.proxyPort="+
			"%[2]s\n", host, port), fmt.Sprintf("# end of port %s\n", port)}
}

// into returns net.properties with the lines.
func (j javaProxy) into(text []byte) []byte {
	text = j.outOf(text)
	return append(slices.Concat(bytes.TrimSuffix(text, []byte("\n")), newline(text)),
		j.begin+j.lines+j.end...)
}

// outOf returns net.properties without the lines.
func (j javaProxy) outOf(text []byte) []byte {
	before, rest, found := bytes.Cut(text, []byte(j.begin))
	_, after, ended := bytes.Cut(rest, []byte(j.end))
	if !found || !ended {
		return text
	}
	return slices.Concat(before, after)
}

// newline returns the line end after a text, which an empty one has not.
func newline(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	return []byte("\n")
}

// outOf returns a file of certificates without the authority.
func (a *authority) outOf(bundle []byte) []byte {
	const begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
	var rest []byte
	for {
		i := bytes.Index(bundle, []byte(begin))
		if i < 0 {
			return append(rest, bundle...)
		}
		rest = append(rest, bundle[:i]...)
		n := bytes.Index(bundle[i:], []byte(end))
		if n < 0 {
			return append(rest, bundle[i:]...)
		}
		n += i + len(end)
		block, _ := pem.Decode(bundle[i:n])
		if block == nil || !bytes.Equal(block.Bytes, a.cert.Raw) {
			rest = append(rest, bundle[i:n]...)
		} else if n < len(bundle) && bundle[n] == '\n' {
			n++
		}
		bundle = bundle[n:]
	}
}
