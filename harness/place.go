package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
)

// A place is a box and the directory in it where a task's scripts start.
type place struct {
	sandbox.Sandbox
	dir string // absolute
}

// placeOf finds out where the task's scripts start.
func placeOf(ctx context.Context, box sandbox.Sandbox, t *Task) (*place, error) {
	if t.Dir != "" {
		return &place{box, t.Dir}, nil
	}
	var out strings.Builder
	_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "pwd"}, Stdout: &out})
	return &place{box, strings.TrimSuffix(out.String(), "\n")}, err
}

// put puts files into the box.
func (p *place) put(ctx context.Context, files []File) error {
	for _, f := range files {
		if err := p.putOne(ctx, f); err != nil {
			return fmt.Errorf("put %s into the box: %w", f.To, err)
		}
	}
	return nil
}

func (p *place) putOne(ctx context.Context, f File) error {
	to := f.To
	if !path.IsAbs(to) {
		to = path.Join(p.dir, to)
	}
	if f.From == "" {
		mode := f.Mode
		if mode == 0 {
			mode = 0o644
		}
		return p.must(ctx, f.Text, `mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"`, to, fmt.Sprintf("%o", mode))
	}
	info, err := os.Stat(f.From)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := p.must(ctx, "", `mkdir -p "$(dirname "$1")"`, to); err != nil {
			return err
		}
		return p.CopyTo(ctx, f.From, to)
	}
	if err := p.must(ctx, "", `mkdir -p "$1"`, to); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.From)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.CopyTo(ctx, filepath.Join(f.From, e.Name()), to); err != nil {
			return err
		}
	}
	return nil
}

// must runs a script of ours.
func (p *place) must(ctx context.Context, stdin, script string, args ...string) error {
	var out strings.Builder
	code, err := p.Run(ctx, &sandbox.Cmd{
		Args: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d: %s", code, strings.TrimSpace(out.String()))
	}
	return err
}

// script runs a task's script; all that it prints goes to out. oom says whether the kernel killed for memory meanwhile.
func (p *place) script(ctx context.Context, s Script, out io.Writer) (code int, oom bool, err error) {
	if err := p.put(ctx, s.Files); err != nil {
		return -1, false, err
	}
	code, err = p.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", s.Command}, Dir: p.dir, Env: s.Env, Stdout: out, Stderr: out, OOM: &oom})
	if errors.Is(err, exec.ErrWaitDelay) { // it has left a server behind, which is as good as any
		err = nil
	}
	return code, oom, err
}

// listing tells of paths what Check.Like compares: names, kinds, permissions, targets of links, and sums of contents.
// cksum is POSIX's; the others are for images of little more than a busybox. EXCEPT stands for what prunes.
const listing = `digest=
for d in cksum sha256sum md5sum; do
	command -v $d >/dev/null && digest=$d && break
done
[ "$digest" ] || { echo "there is neither cksum nor sha256sum nor md5sum" >&2; exit 1; }
for p; do [ -e "$p" ] && find "$p" EXCEPT -print; done | LC_ALL=C sort -u | while IFS= read -r f; do
	if [ -L "$f" ]; then sum=$(readlink "$f")
	elif [ -f "$f" ]; then sum=$(LC_ALL=C sort "$f" | $digest)
	else sum=; fi
	printf '%s\t%s\t%s\n' "$f" "$(ls -ld "$f" | cut -c 1-10)" "$sum"
done`

// list returns a line for each file that Check.Like compares.
func (p *place) list(ctx context.Context, c Check) ([]string, error) {
	prune := ""
	for _, e := range c.Except {
		prune += " -path " + shellquote.Quote(e) + " -prune -o"
	}
	script := strings.Replace(listing, "EXCEPT", prune, 1)
	var out, says strings.Builder
	code, err := p.Run(ctx, &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"}, c.Like...), Dir: p.dir, Stdout: &out, Stderr: &says})
	if err == nil && code != 0 {
		err = fmt.Errorf("list files: exit status %d: %s", code, strings.TrimSpace(says.String()))
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), err
}
