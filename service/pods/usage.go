package pods

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/service/place"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readUsage prints the files of the container's control group, of version 2 or 1. Each line follows
// the file's name. It needs only a shell.
const readUsage = `cd /sys/fs/cgroup || exit
for f in cpu.stat memory.current memory.max memory.stat memory.events pids.current pids.max \
	cpuacct/cpuacct.usage memory/memory.usage_in_bytes memory/memory.limit_in_bytes \
	memory/memory.stat memory/memory.oom_control pids/pids.current pids/pids.max /proc/meminfo; do
	[ -r "$f" ] && while read -r line; do echo "$f $line"; done <"$f"
done
:`

// Usage implements place.Place. It executes a shell in the container, which reads the control
// group. The control group does not say how much the box has written.
func (p *Place) Usage(ctx context.Context, handle string) (*place.Use, error) {
	name, _ := parseHandle(handle)
	if _, err := p.cluster.Pods.Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, p.found(err, "get", name)
	}
	out, err := p.cluster.Output(ctx, name, "sh", "-c", readUsage)
	if err != nil {
		return nil, fmt.Errorf("ask what the pod uses: %w", err)
	}
	return parseUsage(string(out)), nil
}

// parseUsage parses the output of readUsage.
func parseUsage(text string) *place.Use {
	value := map[string]int64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		name, number := fields[0], fields[1]
		if len(fields) > 2 { // "file key number"
			name, number = fields[0]+" "+fields[1], fields[2]
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil { // "max" means no limit
			value[name] = n
		}
	}
	either := func(v2, v1 string) int64 {
		if n, ok := value[v2]; ok {
			return n
		}
		return value[v1]
	}
	u := &place.Use{
		CPU: time.Duration(
			value["cpu.stat usage_usec"]*1000 + value["cpuacct/cpuacct.usage"]),
		MemoryLimit: either("memory.max", "memory/memory.limit_in_bytes"),
		PIDs:        either("pids.current", "pids/pids.current"),
		PIDsLimit:   either("pids.max", "pids/pids.max"),
		OOMKills:    int(either("memory.events oom_kill", "memory/memory.oom_control oom_kill")),
	}
	used, cache := either("memory.current", "memory/memory.usage_in_bytes"),
		either("memory.stat inactive_file", "memory/memory.stat total_inactive_file")
	// The cache of inactive files is free for the programs.
	u.Memory = used - min(cache, used)
	if total := value["/proc/meminfo MemTotal:"] << 10; u.MemoryLimit == 0 || total > 0 &&
		u.MemoryLimit > total {
		u.MemoryLimit = total
	}
	return u
}
