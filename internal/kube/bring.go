package kube

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// waitPause is how often the container looks whether boxd has been brought.
const waitPause = 50 * time.Millisecond

// waitForBoxd is what the container runs until then: it becomes boxd. $1 is how often it looks; the
// rest is boxd's command line. Some shells' sleep takes whole seconds only.
const waitForBoxd = `trap 'exit 0' TERM
n=$1; shift
until [ -x "$1" ]; do
	n=$((n-1)); [ $n -gt 0 ] || { echo "nobody has brought boxd" >&2; exit 1; }
	sleep 0.05 2>/dev/null || sleep 1
done
exec "$@"`

// bringBoxd takes boxd on its standard input, verifies it, and becomes "boxd join". $1 is wire.Dir,
// $2 the box. It says the machine and whether it can uncompress, reads the length and the checksum
// of what comes, and says "ok" when that is in place: until then nothing more comes, so whoever
// reads ahead reads nothing else. Nobody but the directory's owner may put another program there
// from then on.
const bringBoxd = `fail() { echo "$*" >&2; exit 1; }
new=$1/boxd.$$
z=; command -v gzip >/dev/null 2>&1 && z=gzip
command -v sha256sum >/dev/null 2>&1 || fail "the image has no sha256sum"
echo "$(uname -m) $z"
read -r n sum || exit 1
if [ "$z" ]; then head -c "$n" | gzip -dc; else head -c "$n"; fi >"$new" || fail "cannot write $new"
got=$(sha256sum <"$new")
[ "${got%% *}" = "$sum" ] || fail "boxd has not come as it is"
chmod 755 "$new" || exit 1
chmod 755 "$1" 2>/dev/null
mv -f "$new" "$1/boxd" || exit 1
echo ok
exec "$1/boxd" join "$2"`

// Join implements client.Place: it executes "boxd join" in the pod, whose streams are a connection
// to boxd. The first time it brings boxd by the same exec.
func (p *Pod) Join(ctx context.Context) (client.Streams, error) {
	if p.brought.Load() {
		return p.join(ctx, wire.Path, "join", p.Box)
	}
	s, err := p.join(ctx, "sh", "-c", bringBoxd, "sh", wire.Dir, p.Box)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	err = bring(s)
	if !stop() && err == nil {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		s.Close()
		if said := s.Said(); said != "" {
			err = fmt.Errorf("%w; it said %q", err, said)
		}
		return nil, fmt.Errorf("bring boxd into the pod: %w", err)
	}
	p.brought.Store(true)
	return s, nil
}

// Control implements client.Controller: boxd is, or will be, the container's first process.
func (p *Pod) Control(ctx context.Context) (client.Streams, error) {
	s, err := p.cluster.attach(ctx, p.Name)
	if err != nil {
		return nil, fmt.Errorf("attach to the pod: %w",
			p.cluster.explain(err, "attach", "pods", p.Name))
	}
	return s, nil
}

func (p *Pod) join(ctx context.Context, command ...string) (client.Streams, error) {
	s, err := p.cluster.exec(ctx, p.Name, command)
	if err != nil {
		return nil, fmt.Errorf("execute boxd join in the pod: %w",
			p.cluster.explain(err, "exec", "pods", p.Name))
	}
	return s, nil
}

// bring speaks with bringBoxd.
func bring(s io.ReadWriter) error {
	line, err := bounded.BareLine(s, "the answer of the program that brings boxd", 200)
	if err != nil {
		return err
	}
	machine, z, _ := strings.Cut(line, " ")
	b := bin.For(machine)
	if b == nil {
		return fmt.Errorf("boxd is there for linux/amd64 and linux/arm64 only, and the node is "+
			"%q: set Config.NodeSelector, as kubernetes.io/arch=amd64", machine)
	}
	program := b.Compressed
	if z == "" {
		whole, err := b.Program()
		if err != nil {
			return err
		}
		program = string(whole)
	}
	if _, err := io.WriteString(s, fmt.Sprintf("%d %s\n", len(program), b.Sum)); err != nil {
		return err
	}
	if _, err := io.WriteString(s, program); err != nil {
		return err
	}
	switch line, err = bounded.BareLine(s, "the answer of the program that brings boxd", 200); {
	case err != nil:
		return err
	case line != "ok":
		return fmt.Errorf("unexpected answer: %.100q", line)
	}
	return nil
}
