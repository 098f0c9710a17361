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

// waitPause is how long the container's script waits between two looks for boxd.
const waitPause = 50 * time.Millisecond

// waitForBoxd is the container's script: it waits for boxd, and then becomes it. $1 is how many
// times it looks, and the other arguments are boxd's command line. The sleep of some images takes
// only whole seconds.
const waitForBoxd = `trap 'exit 0' TERM
n=$1; shift
until [ -x "$1" ]; do
	n=$((n-1)); [ $n -gt 0 ] || { echo "nobody has brought boxd" >&2; exit 1; }
	sleep 0.05 2>/dev/null || sleep 1
done
exec "$@"`

// bringBoxd is the script of an exec that reads boxd from its standard input, verifies it, and
// becomes "boxd join". $1 is wire.Dir, and $2 is the box. It prints the machine's architecture and
// whether it has gzip, reads the length and the checksum of the program, reads the program, and
// prints "ok". Nothing else is sent to it before the "ok", so a tool that reads ahead swallows
// nothing of what is for boxd join. When it is done, only the directory's owner may put another
// program there.
const bringBoxd = `fail() { echo "$*" >&2; exit 1; }
new=$1/boxd.$$
z=; command -v gzip >/dev/null 2>&1 && z=gzip
command -v sha256sum >/dev/null 2>&1 || fail "the image has no sha256sum"
echo "$(uname -m) $z"
read -r n sum || exit 1
if [ "$z" ]; then head -c "$n" | gzip -dc; else head -c "$n"; fi >"$new" || fail "cannot write $new"
got=$(sha256sum <"$new")
[ "${got%% *}" = "$sum" ] || fail "boxd was damaged on the way"
chmod 755 "$new" || exit 1
chmod 755 "$1" 2>/dev/null
mv -f "$new" "$1/boxd" || exit 1
echo ok
exec "$1/boxd" join "$2"`

// Join implements client.Place. It executes "boxd join" in the pod, whose streams are a connection
// to boxd. The first time, the same exec brings boxd.
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

// Control implements client.Controller. boxd is, or will be, the container's first process.
func (p *Pod) Control(ctx context.Context) (client.Streams, error) {
	s, err := p.cluster.attach(ctx, p.Name)
	if err != nil {
		return nil, fmt.Errorf("attach to the pod: %w",
			p.cluster.Explain(err, "attach", "pods", p.Name))
	}
	return s, nil
}

func (p *Pod) join(ctx context.Context, command ...string) (client.Streams, error) {
	s, err := p.cluster.exec(ctx, p.Name, command)
	if err != nil {
		return nil, fmt.Errorf("execute boxd join in the pod: %w",
			p.cluster.Explain(err, "exec", "pods", p.Name))
	}
	return s, nil
}

// bring talks to bringBoxd, which has the streams s.
func bring(s io.ReadWriter) error {
	line, err := bounded.BareLine(s, "the answer of the program that brings boxd", 200)
	if err != nil {
		return err
	}
	machine, z, _ := strings.Cut(line, " ")
	b := bin.For(machine)
	if b == nil {
		return fmt.Errorf("there is no boxd for the node, which is %q: set Config.NodeSelector to "+
			"nodes of linux/amd64 or linux/arm64, such as kubernetes.io/arch=amd64", machine)
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
