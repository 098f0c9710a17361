package shfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
)

// An info is what stat prints about a file.
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

// OwnerOf implements shellbox.FileChanger.
func (c *Client) OwnerOf(of fs.FileInfo) (uid, gid int, ok bool) {
	i, ok := of.(*info)
	if !ok {
		return 0, 0, false
	}
	user, group, _ := strings.Cut(i.owner, ":")
	u, uerr := strconv.ParseUint(user, 10, 32)
	g, gerr := strconv.ParseUint(group, 10, 32)
	return int(u), int(g), uerr == nil && gerr == nil
}

// statMax bounds the length of a line of stat, which has five numbers.
const statMax = 128

// parseStat parses a line that stat prints.
func parseStat(name, line string) (*info, error) {
	words := strings.Fields(line[:min(len(line), statMax)])
	if len(words) != 5 || len(line) > statMax {
		return nil, fmt.Errorf("stat prints %.1000q", line)
	}
	var bad error
	i := &info{
		name: path.Base(name), mode: modeOf(uint32(parseNumber(words[0], 16, &bad))),
		size: parseNumber(words[1], 10, &bad),
		time: time.Unix(parseNumber(words[2], 10, &bad), 0), owner: words[3] + ":" + words[4],
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
	return c.statWith(`stat -L "$2" "$3" -- "$1"`, name)
}

// Lstat implements shellbox.FileClient.
func (c *Client) Lstat(name string) (fs.FileInfo, error) {
	return c.statWith(`stat "$2" "$3" -- "$1"`, name)
}

// statWith returns what a script that calls stat prints about a file.
func (c *Client) statWith(script, name string) (fs.FileInfo, error) {
	line, err := c.capture(script, name, c.statOptions[0], c.statOptions[1])
	if err != nil {
		return nil, err
	}
	i, err := parseStat(name, line)
	if err != nil {
		return nil, err
	}
	return i, nil
}

// namesMax bounds the length of the arguments of one stat. Every system takes more.
const namesMax = 64 << 10

// ReadDir implements shellbox.FileClient. It leaves out files that are removed during the call. If
// there are too many files, it returns the first of them and an error.
func (c *Client) ReadDir(dir string) ([]fs.FileInfo, error) {
	list, tooMany := c.capture(`ls -d -- "$1/." >/dev/null || exit 1; cd -- "$1" || exit 1; [ -r . ] || { echo ": Permission denied" >&2; exit 1; }
for f in * .[!.]* ..?*; do if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\0' "$f"; fi; done`, dir)
	if tooMany != nil && !errors.As(tooMany, new(*bounded.TooLargeError)) {
		return nil, tooMany
	}
	list = list[:strings.LastIndexByte(list, 0)+1] // without an incomplete name at the end
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
			if infos, err = c.statNames(dir, names, infos); err != nil {
				return nil, err
			}
			names, length = names[:0], len(name)+1
		}
		if name != "" {
			names = append(names, name)
		}
	}
	infos, err := c.statNames(dir, names, infos)
	if err != nil {
		return nil, err
	}
	return infos, tooMany
}

// statNames appends the infos of files in a directory.
func (c *Client) statNames(dir string, names []string, infos []fs.FileInfo) ([]fs.FileInfo, error) {
	if len(names) == 0 {
		return infos, nil
	}
	lines, err := c.capture(`cd -- "$1" && shift && stat "$@"`,
		append([]string{dir, c.statOptions[0], c.statOptions[1], "--"}, names...)...)
	lines = strings.TrimSuffix(lines, "\n")
	if err != nil || strings.Count(lines, "\n") != len(names)-1 {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return c.statEach(dir, names, infos)
	}
	for _, name := range names {
		var line string
		line, lines, _ = strings.Cut(lines, "\n")
		i, err := parseStat(name, line)
		if err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	return infos, nil
}

// statEach is statNames with one stat for each file. It leaves out files that do not exist.
func (c *Client) statEach(dir string, names []string,
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
