package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/specfile"
	"github.com/sandshell/sandshell/sshbox"
)

// DirSpecs is a store of specs in a directory. Each file NAME.yaml or NAME.yml is the spec NAME, or
// of the id that the file gives. The default is the spec of default.yaml or of a file that says so,
// else the first by ID. File says what a file holds.
//
// Each call reads the files that have changed. If a file cannot be read or is wrong, its last good
// spec stays in force. OpenSpecs and Check return what is wrong.
type DirSpecs struct {
	dir string

	mu    sync.Mutex
	files map[string]*specFile // by name
	specs *MemorySpecs
}

var _ Specs = (*DirSpecs)(nil)

type specFile struct {
	modified time.Time
	size     int64
	spec     *Spec // the last good one; nil: none
	first    bool  // the spec is the default
	text     []byte
	err      error
}

// A File is what a file of DirSpecs holds. Names are in lower case with "_"; an unknown name is an
// error. Sizes are in bytes, or written as "256m" or "2g"; durations are written as "20m" or "12h".
type File struct {
	ID      string `yaml:"id"`
	Default bool   `yaml:"default"` // it is the default

	Image           string   `yaml:"image"`
	Platform        string   `yaml:"platform"`
	Entrypoint      bool     `yaml:"entrypoint"`
	User            string   `yaml:"user"`
	Dir             string   `yaml:"dir"`
	Env             []string `yaml:"env"` // Spec.Env
	Shell           []string `yaml:"shell"`
	ReadOnlyRoot    bool     `yaml:"read_only_root"`
	Network         string   `yaml:"network"`
	Publish         []int    `yaml:"publish"`
	ExtraHosts      []string `yaml:"extra_hosts"`
	DNS             []string `yaml:"dns"`
	Hostname        string   `yaml:"hostname"`
	Memory          int64    `yaml:"memory,size"` // bytes, or as "256m" or "2g"
	CPUs            float64  `yaml:"cpus"`
	PIDs            int64    `yaml:"pids"`
	ShmSize         int64    `yaml:"shm_size,size"` // likewise
	GPUs            int      `yaml:"gpus"`
	CapAdd          []string `yaml:"cap_add"`
	CapDrop         []string `yaml:"cap_drop"`
	AllowPrivileges bool     `yaml:"allow_new_privileges"`
	SecurityOpt     []string `yaml:"security_opt"`
	Runtime         string   `yaml:"runtime"`
	Mounts          []struct {
		Type     string `yaml:"type"`
		Source   string `yaml:"source"`
		Target   string `yaml:"target"`
		ReadOnly bool   `yaml:"read_only"`
		Size     int64  `yaml:"size,size"`
	} `yaml:"mounts"`
	Labels       map[string]string `yaml:"labels"`
	StartTimeout time.Duration     `yaml:"start_timeout"`

	Ports []struct {
		Name string `yaml:"name"`
		Port int    `yaml:"port"`
	} `yaml:"ports"`
	Health *struct {
		Port int    `yaml:"port"`
		Path string `yaml:"path"`
	} `yaml:"health"`
	Lifecycle struct {
		Idle       time.Duration `yaml:"idle"`
		Session    time.Duration `yaml:"session"`
		Keep       time.Duration `yaml:"keep"`
		MaxRunning int           `yaml:"max_running"`
	} `yaml:"lifecycle"`
	Warm        int `yaml:"warm"`
	MaxPerOwner int `yaml:"max_per_owner"`
}

// OpenSpecs reads the specs of a directory. It is an error if there is none, or if any file is
// wrong. The error joins an *InvalidError for each wrong file.
func OpenSpecs(dir string) (*DirSpecs, error) {
	d := &DirSpecs{dir: dir, files: map[string]*specFile{}, specs: &MemorySpecs{}}
	err := d.Check()
	if err == nil && len(d.files) == 0 {
		err = invalid(dir, "there is no file NAME.yaml in it")
	}
	if err != nil {
		err = fmt.Errorf("service: %w", err)
	}
	return d, err
}

// Check reads the files that have changed, and returns an error if any file is wrong.
func (d *DirSpecs) Check() error {
	_, err := d.read()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		errs = append(errs, d.files[name].err)
	}
	return errors.Join(errs...)
}

// read reads the files that have changed.
func (d *DirSpecs) read() (*MemorySpecs, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fmt.Errorf("read the specs: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	there := map[string]bool{}
	changed := false
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		info, err := os.Stat(filepath.Join(d.dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		there[e.Name()] = true
		f := d.files[e.Name()]
		if f == nil {
			f = &specFile{}
			d.files[e.Name()] = f
		}
		if err == nil && f.err == nil && f.spec != nil && f.modified.Equal(info.ModTime()) &&
			f.size == info.Size() && time.Since(f.modified) > clockStep {
			continue
		}
		changed = f.read(d.dir, e.Name()) || changed
		if err == nil {
			f.modified, f.size = info.ModTime(), info.Size()
		}
	}
	for name := range d.files {
		if !there[name] {
			delete(d.files, name)
			changed = true
		}
	}
	if changed {
		d.gather()
	}
	return d.specs, nil
}

// clockStep is how long a file's time may stay the same though the file changes.
const clockStep = 2 * time.Second

// read reads the file, and reports whether it is another than before.
func (f *specFile) read(dir, name string) bool {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil && f.text != nil && bytes.Equal(text, f.text) {
		return false
	}
	f.text = text
	var spec *Spec
	var first bool
	if err == nil {
		spec, first, err = parseSpec(name, text)
	}
	if f.err = err; err != nil {
		var e *InvalidError
		field := filepath.Join(dir, name)
		if errors.As(err, &e) {
			field += ": " + e.Field
			err = errors.New(e.Reason)
		}
		f.err = &InvalidError{Field: field, Reason: err.Error()}
		return false
	}
	f.spec, f.first = spec, first
	return true
}

// gather makes one store of the files' specs.
func (d *DirSpecs) gather() {
	specs := &MemorySpecs{}
	first := "" // the file of the default
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		if f.spec == nil {
			continue
		}
		if _, there := specs.findLocked(f.spec.ID); there {
			f.err = invalid(filepath.Join(d.dir, name)+": id", "%q is the id in another file, too",
				f.spec.ID)
			f.text = nil // it is read again, though it does not change: the other may
			continue
		}
		if err := specs.Set(f.spec); err != nil {
			f.err = err
		}
		switch {
		case !f.first:
		case specs.first == "":
			specs.first, first = f.spec.ID, name
		default:
			f.err = invalid(filepath.Join(d.dir, name)+": default",
				"%s is the default, too: there can be one", first)
			f.text = nil
		}
	}
	if specs.first == "" && len(specs.specs) > 0 {
		specs.first = specs.specs[0].ID
	}
	d.specs = specs
}

// parseSpec parses the file of that name.
func parseSpec(name string, text []byte) (spec *Spec, isDefault bool, err error) {
	var f File
	if err := specfile.Decode(text, &f); err != nil {
		return nil, false, err
	}
	spec = &Spec{ID: f.ID, Env: f.Env, Warm: f.Warm, MaxPerOwner: f.MaxPerOwner,
		Lifecycle: Lifecycle(f.Lifecycle), Config: sshbox.Config{
			Image: f.Image, Platform: f.Platform, Entrypoint: f.Entrypoint, User: f.User,
			Dir:   f.Dir,
			Shell: f.Shell, ReadOnlyRoot: f.ReadOnlyRoot,
			Network: f.Network, Publish: f.Publish, ExtraHosts: f.ExtraHosts, DNS: f.DNS,
			Hostname: f.Hostname, Memory: f.Memory, CPUs: f.CPUs, PIDs: f.PIDs, ShmSize: f.ShmSize,
			GPUs: f.GPUs, CapAdd: f.CapAdd, CapDrop: f.CapDrop,
			AllowNewPrivileges: f.AllowPrivileges,
			SecurityOpt:        f.SecurityOpt, Runtime: f.Runtime,
			Labels: f.Labels, StartTimeout: f.StartTimeout,
		}}
	if spec.ID == "" {
		spec.ID = strings.TrimSuffix(name, filepath.Ext(name))
	}
	for _, m := range f.Mounts {
		spec.Config.Mounts = append(spec.Config.Mounts, sshbox.Mount{
			Type: sshbox.MountType(m.Type), Source: m.Source, Target: m.Target,
			ReadOnly: m.ReadOnly, Size: m.Size,
		})
	}
	for _, p := range f.Ports {
		spec.Ports = append(spec.Ports, Port(p))
	}
	if f.Health != nil {
		spec.Health = &Health{Port: f.Health.Port, Path: f.Health.Path}
	}
	return spec, f.Default || strings.TrimSuffix(name, filepath.Ext(name)) == "default",
		spec.Check()
}

// Get implements Specs.
func (d *DirSpecs) Get(ctx context.Context, id string) (*Spec, error) {
	specs, err := d.read()
	if err != nil {
		return nil, err
	}
	return specs.Get(ctx, id)
}

// BatchGet implements Specs.
func (d *DirSpecs) BatchGet(ctx context.Context, ids []string) ([]*Spec, error) {
	specs, err := d.read()
	if err != nil {
		return nil, err
	}
	return specs.BatchGet(ctx, ids)
}

// Search implements Specs.
func (d *DirSpecs) Search(ctx context.Context, page string, limit int) ([]*Spec, string, error) {
	specs, err := d.read()
	if err != nil {
		return nil, "", err
	}
	return specs.Search(ctx, page, limit)
}

// Default implements Specs.
func (d *DirSpecs) Default(ctx context.Context) (*Spec, error) {
	specs, err := d.read()
	if err != nil {
		return nil, err
	}
	return specs.Default(ctx)
}
