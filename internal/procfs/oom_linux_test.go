package procfs

import (
	"slices"
	"testing"
)

func TestOOMFiles(t *testing.T) {
	const (
		v1 = "31 23 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup " +
			"rw,memory\n"
		own = "710 704 0:27 /docker/0123 /sys/fs/cgroup/memory ro,nosuid master:9 - cgroup " +
			"cgroup rw,memory\n"
		v2 = "42 32 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 " +
			"rw,nsdelegate\n"
		spaced   = "42 32 0:30 /../.. /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
		hybrid   = "40 32 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		v1groups = "12:cpu,cpuacct:/other\n11:memory:/docker/0123\n0::/unified\n"
	)
	for _, c := range []struct {
		mounts, groups string
		want           []string
	}{
		{v1, v1groups, []string{"/sys/fs/cgroup/memory/docker/0123/memory.oom_control"}},
		{own, v1groups, []string{"/sys/fs/cgroup/memory/memory.oom_control"}},
		{v2, "0::/system.slice/docker-0123.scope\n", []string{
			"/sys/fs/cgroup/system.slice/docker-0123.scope/memory.events"}},
		{v2, "0::/\n", []string{"/sys/fs/cgroup/memory.events"}},
		{spaced, "0::/a\n", []string{"/sys/fs/cgroup/memory.events"}},
		{hybrid + v1, v1groups, []string{"/sys/fs/cgroup/unified/unified/memory.events",
			"/sys/fs/cgroup/memory/docker/0123/memory.oom_control"}},
		{"22 1 8:1 / / rw - ext4 /dev/sda rw\nbroken\n", "", nil},
	} {
		if got := oomFiles(c.mounts, c.groups); !slices.Equal(got, c.want) {
			t.Errorf("%s%s: %q, want %q", c.mounts, c.groups, got, c.want)
		}
	}
}
