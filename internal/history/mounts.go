//go:build linux

package history

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A mount is a file system that is mounted below a directory.
type mount struct {
	path     string // in the directory
	system   string // the file system, such as "tmpfs"
	writable bool
}

// mountsBelow returns the mounts below a directory.
func mountsBelow(dir string) ([]mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(bytes.ToValidUTF8(text, nil)), dir), nil
}

// parseMounts reads a mountinfo: see proc(5).
func parseMounts(text, dir string) (all []mount) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		f, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(system) < 3 {
			continue
		}
		at, ok := strings.CutPrefix(unescape(f[4]), strings.TrimSuffix(dir, "/")+"/")
		if !ok || at == "" {
			continue
		}
		all = append(all, mount{path: at, system: system[0],
			writable: !slices.Contains(strings.Split(f[5], ","), "ro") &&
				!slices.Contains(strings.Split(system[2], ","), "ro")})
	}
	return all
}

// unescape replaces a backslash and three octal digits by their character.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// ofKernel are file systems in which nobody keeps files.
var ofKernel = []string{"proc", "sysfs", "devpts", "devtmpfs", "mqueue", "cgroup", "cgroup2",
	"securityfs", "debugfs", "tracefs", "bpf"}

// mostMounts bounds how many are told.
const mostMounts = 100

// used returns the mounts in which a box may have left something, for people.
func (i Image) used(mounts []mount) (told []string) {
	for _, m := range mounts {
		full := path.Join(i.Dir, m.path)
		first, _, _ := strings.Cut(m.path, "/")
		devices := (first == "dev" && m.path != "dev/shm") || first == "proc" || first == "sys"
		if !m.writable || devices || full == i.Own || slices.Contains(ofKernel, m.system) ||
			len(told) == mostMounts {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(full, &st) != nil {
			continue
		}
		what := "volume"
		if m.system == "tmpfs" {
			what = "tmpfs"
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if !time.Unix(0, st.Ctim.Nano()).After(i.Since) {
				continue
			}
			what = "the cluster's, changed since"
		} else if entries, err := os.ReadDir(full); err == nil && len(entries) == 0 {
			continue
		}
		told = append(told, full+" ("+what+")")
	}
	slices.Sort(told)
	return slices.Compact(told)
}
