package pods

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestConfig checks that each field of a Spec's Config is in the pod's Config, or refused by its
// name. Fields that the service sets are neither.
func TestConfig(t *testing.T) {
	values := map[string]any{
		"Progress": func(sshbox.PullProgress) {}, "Pull": sshbox.PullNever, "Network": "bridge",
		"Docker": new(client.Client), "Logger": slog.New(slog.DiscardHandler),
		"Mounts": []sshbox.Mount{{Type: sshbox.Volume, Target: "/a"}},
	}
	base := kubebox.Config{Image: "base", Env: []string{"A=1"},
		Labels: map[string]string{"of": "base"}, BoxdImage: "boxd"}
	p := New(base)
	plain, err := p.config(place.Request{Spec: "s"})
	require.NoError(t, err)
	require.Equal(t, base, plain)
	fields := reflect.TypeFor[sshbox.Config]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		if !f.IsExported() || f.Name == "Keep" || f.Name == "Name" || f.Name == "Docker" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			request := place.Request{Spec: "s"}
			field := reflect.ValueOf(&request.Config).Elem().Field(i)
			switch {
			case values[f.Name] != nil:
				field.Set(reflect.ValueOf(values[f.Name]))
			case f.Type.Kind() == reflect.Slice:
				field.Set(reflect.MakeSlice(f.Type, 1, 1))
			case f.Type.Kind() == reflect.Map:
				field.Set(reflect.ValueOf(map[string]string{"a": "b"}))
			case f.Type.Kind() == reflect.String:
				field.SetString("text")
			case f.Type.Kind() == reflect.Bool:
				field.SetBool(true)
			case field.CanInt():
				field.SetInt(int64(time.Second))
			default:
				field.SetFloat(1)
			}
			got, err := p.config(request)
			if err == nil {
				require.NotEqual(t, base, got, "the field is neither used nor refused")
				return
			}
			var invalid *service.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "Spec.Config."+f.Name, invalid.Field)
		})
	}

	got, err := p.config(place.Request{Spec: "s", Config: sshbox.Config{
		Image: "its own", Env: []string{"B=2", "C=3"}, Labels: map[string]string{"by": "spec"},
		Network: "none", Mounts: []sshbox.Mount{{Type: sshbox.Tmpfs, Target: "/t", Size: 9}},
	}})
	require.NoError(t, err)
	require.Equal(t, kubebox.Config{
		Image: "its own", BoxdImage: "boxd", Env: []string{"A=1", "B=2", "C=3"},
		Labels: map[string]string{"of": "base", "by": "spec"}, Network: kubebox.NetworkNone,
		Mounts: []kubebox.Mount{{Type: kubebox.Tmpfs, Target: "/t", Size: 9}},
	}, got)
	require.Equal(t, map[string]string{"of": "base"}, base.Labels)
	_, err = p.config(place.Request{Spec: "s", Egress: true})
	require.ErrorIs(t, err, service.ErrInvalid)
	require.ErrorContains(t, err, "Spec.Egress: spec \"s\" asks for it")
	_, err = p.config(place.Request{Spec: "s", PausedBy: "Idle"})
	require.ErrorIs(t, err, service.ErrInvalid)
	require.ErrorContains(t, err, "Spec.Lifecycle.Idle")
}

func TestParseUsage(t *testing.T) {
	const meminfo = "/proc/meminfo MemTotal:       1000 kB\n"
	require.Equal(t, &place.Use{CPU: 5 * time.Microsecond, Memory: 60, MemoryLimit: 1000 << 10,
		PIDs: 3, OOMKills: 2}, parseUsage(
		"cpu.stat usage_usec 5\nmemory.current 100\nmemory.max max\nmemory.stat inactive_file "+
			"40\nmemory.events oom_kill 2\npids.current 3\npids.max max\n"+meminfo), "version 2")
	require.Equal(t, &place.Use{CPU: 5, Memory: 60, MemoryLimit: 500, PIDs: 3, PIDsLimit: 9},
		parseUsage(
			"cpuacct/cpuacct.usage 5\nmemory/memory.usage_in_bytes "+
				"100\nmemory/memory.limit_in_bytes "+
				"500\nmemory/memory.stat total_inactive_file 40\n"+
				"memory/memory.oom_control oom_kill 0\npids/pids.current 3\npids/pids.max 9\n"+
				meminfo),
		"version 1")
}
