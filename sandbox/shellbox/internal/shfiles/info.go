package shfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
)

// An info is what stat tells of a file.
type info struct {
	name  string
	size  int64
	mode  fs.FileMode
	time  time.Time
	owner string // "uid:gid"
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) ModTime() time.Time { return i.time }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return nil }

// statMax is how long a line of stat may be: it has five numbers.
const statMax = 128

// parse reads a line of stat's.
func parse(name, line string) (*info, error) {
	words := strings.Fields(line[:min(len(line), statMax)])
	if len(words) != 5 || len(line) > statMax {
		return nil, fmt.Errorf("stat prints %.1000q", line)
	}
	var bad error
	i := &info{
		name: path.Base(name), mode: modeOf(uint32(number(words[0], 16, &bad))),
		size: number(words[1], 10, &bad),
		time: time.Unix(number(words[2], 10, &bad), 0), owner: words[3] + ":" + words[4],
	}
	if bad == nil && i.size < 0 {
		bad = errors.New("no file has such a size")
	}
	if bad != nil {
		return nil, fmt.Errorf("stat prints %.1000q: %w", line, bad)
	}
	return i, nil
}

// Stat implements shellbox.FileClient.
func (c *Client) Stat(name string) (fs.FileInfo, error) {
	return c.look(`stat -L "$2" "$3" -- "$1"`, name)
}

// Lstat implements shellbox.FileClient.
func (c *Client) Lstat(name string) (fs.FileInfo, error) {
	return c.look(`stat "$2" "$3" -- "$1"`, name)
}

func (c *Client) look(script, name string) (fs.FileInfo, error) {
	line, err := c.output(script, name, c.stat[0], c.stat[1])
	if err != nil {
		return nil, err
	}
	i, err := parse(name, line)
	if err != nil {
		return nil, err
	}
	return i, nil
}

// namesMax is how much one stat gets as arguments: less than any system takes.
const namesMax = 64 << 10

// ReadDir implements shellbox.FileClient. What has gone meanwhile is left out. Of too many files it
// returns the first, with the error.
func (c *Client) ReadDir(dir string) ([]fs.FileInfo, error) {
	list, tooMany := c.output(`ls -d -- "$1/." >/dev/null || exit 1; cd -- "$1" || exit 1; [ -r . ] || { echo ": Permission denied" >&2; exit 1; }
for f in * .[!.]* ..?*; do if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\0' "$f"; fi; done`, dir)
	if tooMany != nil && !errors.As(tooMany, new(*bounded.TooLargeError)) {
		return nil, tooMany
	}
	list = list[:strings.LastIndexByte(list, 0)+1] // whole names
	infos := []fs.FileInfo{}
	var names []string
	length := 0
	counted := bounded.List{What: "the list of the directory", Max: listMax}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if err := counted.Add(len(name)); err != nil {
			tooMany = err
			break
		}
		if length += len(name) + 1; length > namesMax {
			var err error
			if infos, err = c.lookIn(dir, names, infos); err != nil {
				return nil, err
			}
			names, length = names[:0], len(name)+1
		}
		if name != "" {
			names = append(names, name)
		}
	}
	infos, err := c.lookIn(dir, names, infos)
	if err != nil {
		return nil, err
	}
	return infos, tooMany
}

// lookIn appends what names of a directory are.
func (c *Client) lookIn(dir string, names []string, infos []fs.FileInfo) ([]fs.FileInfo, error) {
	if len(names) == 0 {
		return infos, nil
	}
	lines, err := c.output(`cd -- "$1" && shift && stat "$@"`,
		append([]string{dir, c.stat[0], c.stat[1], "--"}, names...)...)
	lines = strings.TrimSuffix(lines, "\n")
	if err != nil || strings.Count(lines, "\n") != len(names)-1 {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return c.lookAtEach(dir, names, infos)
	}
	for _, name := range names {
		var line string
		line, lines, _ = strings.Cut(lines, "\n")
		i, err := parse(name, line)
		if err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	return infos, nil
}

// lookAtEach is for names of which some may have gone.
func (c *Client) lookAtEach(dir string, names []string,
	infos []fs.FileInfo) ([]fs.FileInfo, error) {
	for _, name := range names {
		i, err := c.Lstat(dir + "/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	return infos, nil
}
