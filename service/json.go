package service

import (
	"strings"
	"time"
)

// What Handler sends, by OpenHands' names. A pointer that is nil is null.
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

func toJSON(i *Info) *boxJSON {
	b := &boxJSON{
		ID: i.ID, Owner: nullable(i.Owner), Spec: i.Spec, Status: i.Status,
		Detail: nullable(i.Detail), Key: nullable(i.SessionKey),
		Created: i.Created.UTC(), Dir: nullable(i.Dir), Kept: nullable(string(i.Kept)),
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
	j := &specJSON{ID: s.ID, Env: map[string]string{}, Dir: s.Config.Dir, Ports: []portJSON{}}
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
