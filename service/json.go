package service

import (
	"cmp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sshbox"
)

// The JSON objects that Handler sends, with OpenHands' names. A nil pointer becomes null.
type (
	pageJSON[T any] struct {
		Items []T     `json:"items"`
		Next  *string `json:"next_page_id"`
	}
	boxJSON struct {
		ID      string    `json:"id"`
		Owner   *string   `json:"created_by_user_id"`
		Spec    string    `json:"sandbox_spec_id"`
		Status  Status    `json:"status"`
		Detail  *string   `json:"status_detail"`
		Key     *string   `json:"session_api_key"`
		URLs    []urlJSON `json:"exposed_urls"`
		Created time.Time `json:"created_at"`
		Dir     *string   `json:"working_dir"`
		Kept    *string   `json:"kept"`
		Use     *useJSON  `json:"use"`

		Metadata map[string]string `json:"metadata"`
		Egress   []string          `json:"egress"`
		Hosts    []string          `json:"hosts"`
		Pauses   *time.Time        `json:"pauses_at"`
		Ends     *time.Time        `json:"ends_at"`

		PauseAtEnd bool    `json:"pause_at_end"`
		WakeFor    float64 `json:"wake_for_seconds"`
	}
	urlJSON struct {
		Name      string `json:"name"`
		URL       string `json:"url"`
		Port      int    `json:"port"`
		Published *int   `json:"published_port"`
	}
	useJSON struct {
		CPU         float64 `json:"cpu_seconds"`
		Memory      int64   `json:"memory_bytes"`
		MemoryLimit int64   `json:"memory_limit_bytes"`
		PIDs        int64   `json:"pids"`
		PIDsLimit   int64   `json:"pids_limit"`
		Disk        int64   `json:"disk_bytes"`
		OOMKills    int     `json:"oom_kills"`
	}
	specJSON struct {
		ID      string            `json:"id"`
		Command []string          `json:"command"`
		Env     map[string]string `json:"initial_env"`
		Dir     string            `json:"working_dir"`
		Ports   []portJSON        `json:"exposed_ports"`
		Image   string            `json:"image"`
		Limits  limitsJSON        `json:"limits"`
		Network string            `json:"network"`
		Egress  []string          `json:"egress"`
		Life    lifecycleJSON     `json:"lifecycle"`
	}
	limitsJSON struct {
		Memory int64   `json:"memory_bytes"`
		CPUs   float64 `json:"cpus"`
		PIDs   int64   `json:"pids"`
	}
	lifecycleJSON struct {
		Idle       float64 `json:"idle_seconds"`
		Session    float64 `json:"session_seconds"`
		Keep       float64 `json:"keep_seconds"`
		Wake       bool    `json:"wake"`
		MaxRunning int     `json:"max_running"`
	}
	portJSON struct {
		Name string `json:"name"`
		Port int    `json:"port"`
	}
)

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func nullableTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func toJSON(i *Info) *boxJSON {
	b := &boxJSON{
		ID: i.ID, Owner: nullable(i.Owner), Spec: i.Spec, Status: i.Status,
		Detail: nullable(i.Detail), Key: nullable(i.SessionKey),
		Created: i.Created.UTC(), Dir: nullable(i.Dir), Kept: nullable(string(i.Kept)),
		Metadata: i.Metadata, Egress: i.Egress, Hosts: i.Hosts, Pauses: nullableTime(i.Pauses),
		Ends: nullableTime(i.Ends), PauseAtEnd: i.PauseAtEnd, WakeFor: i.WakeFor.Seconds(),
	}
	if b.Metadata == nil {
		b.Metadata = map[string]string{}
	}
	if i.Status == Running {
		b.URLs = []urlJSON{}
	}
	for _, u := range i.URLs {
		j := urlJSON{Name: u.Name, URL: u.URL, Port: u.Port}
		if port, ok := i.Published[u.Port]; ok {
			j.Published = &port
		}
		b.URLs = append(b.URLs, j)
	}
	if u := i.Use; u != nil {
		b.Use = &useJSON{
			CPU: u.CPU.Seconds(), Memory: u.Memory, MemoryLimit: u.MemoryLimit, PIDs: u.PIDs,
			PIDsLimit: u.PIDsLimit, Disk: u.Disk, OOMKills: u.OOMKills,
		}
	}
	return b
}

func (s *Spec) toJSON() *specJSON {
	c, l := s.config(), s.Lifecycle
	j := &specJSON{ID: s.ID, Env: map[string]string{}, Dir: c.Dir, Ports: []portJSON{},
		Image: cmp.Or(c.Image, sshbox.DefaultImage), Network: c.Network, Egress: s.Egress,
		Limits: limitsJSON{c.Memory, c.CPUs, max(cmp.Or(c.PIDs, sshbox.DefaultPIDs), 0)},
		Life: lifecycleJSON{l.Idle.Seconds(), l.Session.Seconds(), l.Keep.Seconds(), l.Wake,
			l.MaxRunning}}
	for _, list := range [][]string{s.Config.Env, s.Env} {
		for _, kv := range list {
			name, value, _ := strings.Cut(kv, "=")
			j.Env[name] = value
		}
	}
	for _, p := range s.Ports {
		j.Ports = append(j.Ports, portJSON(p))
	}
	return j
}
