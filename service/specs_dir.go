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
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/specfile"
)

// DirSpecs is a store of specs in a directory. Each file NAME.yaml, NAME.yml, NAME.json or
// NAME.toml holds a spec, whose ID is NAME unless the file has an id. The default is the spec of a
// file default.yaml and so on, or of one that has "default: true", else the first by ID.
//
// The keys of a file are those of Spec, and on the same level those of sshbox.Config: the tags
// "spec" there name them. A key that there is not is an error. Sizes are in bytes, or written as
// "256m" or "2g". Durations are written as "20m" or "12h".
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
	modified  time.Time
	size      int64
	spec      *Spec // the last good one; nil if there was none
	isDefault bool  // the spec is the default
	text      []byte
	err       error
}

// A dirFile is what a file of DirSpecs holds.
type dirFile struct {
	Spec    `spec:",inline"`
	Default bool `spec:"default"` // this spec is the default
}

// OpenSpecs reads the specs of a directory. The error joins an *InvalidError for each wrong file.
// It is an *InvalidError too if there is no file. Beside an error, the DirSpecs has the good specs.
func OpenSpecs(dir string) (*DirSpecs, error) {
	d := &DirSpecs{dir: dir, files: map[string]*specFile{}, specs: &MemorySpecs{}}
	err := d.Check()
	if err == nil && len(d.files) == 0 {
		err = invalid(dir, "it has no file NAME.yaml: write one for each spec")
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
		if e.IsDir() || !slices.Contains(specExtensions, ext) {
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

// specExtensions are the ends of the names of files with specs.
var specExtensions = []string{".yaml", ".yml", ".json", ".toml"}

// clockStep is how long a file's modification time may stay the same while the file changes.
const clockStep = 2 * time.Second

// read reads the file, and reports whether the spec has changed.
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
	f.spec, f.isDefault = spec, first
	return true
}

// gather makes d.specs from the specs of all files.
func (d *DirSpecs) gather() {
	specs := &MemorySpecs{}
	first := "" // the file of the default
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		if f.spec == nil {
			continue
		}
		if _, there := specs.findLocked(f.spec.ID); there {
			f.err = invalid(filepath.Join(d.dir, name)+": id",
				"another file has the id %q: give each file its own", f.spec.ID)
			f.text = nil // so that this file is read again: the other one may change
			continue
		}
		if err := specs.Set(f.spec); err != nil {
			f.err = err
		}
		switch {
		case !f.isDefault:
		case specs.defaultID == "":
			specs.defaultID, first = f.spec.ID, name
		default:
			f.err = invalid(filepath.Join(d.dir, name)+": default",
				"%s is the default too: leave it to one file", first)
			f.text = nil
		}
	}
	if specs.defaultID == "" && len(specs.specs) > 0 {
		specs.defaultID = specs.specs[0].ID
	}
	d.specs = specs
}

// parseSpec parses the text of a file.
func parseSpec(name string, text []byte) (spec *Spec, isDefault bool, err error) {
	f := dirFile{}
	format := specfile.YAML
	switch filepath.Ext(name) {
	case ".json":
		format = specfile.JSON
	case ".toml":
		format = specfile.TOML
	}
	if err := format.Decode(text, &f); err != nil {
		return nil, false, err
	}
	spec = &f.Spec
	if spec.ID == "" {
		spec.ID = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return spec, f.Default || strings.TrimSuffix(name, filepath.Ext(name)) == "default",
		inFile(format, text, spec.Check())
}

// inFile returns an *InvalidError about a field as an error about the key of a file, if the file
// has the key.
func inFile(format specfile.Format, text []byte, err error) error {
	var e *InvalidError
	if !errors.As(err, &e) {
		return err
	}
	key := keyOf(reflect.TypeFor[Spec](), strings.TrimPrefix(e.Field, "Spec."))
	name, _, _ := strings.Cut(key, "[")
	line := format.Line(text, name)
	if key == "" || line == 0 {
		return err
	}
	return &specfile.Error{Line: line, Key: key, Reason: e.Reason}
}

// keyOf returns the key of a field of a struct, such as "egress[1]" for "Egress[1]". It returns ""
// if the field has none.
func keyOf(of reflect.Type, field string) string {
	field, rest, below := strings.Cut(field, ".")
	name, index, indexed := strings.Cut(field, "[")
	f, ok := of.FieldByName(name)
	key, options, _ := strings.Cut(f.Tag.Get("spec"), ",")
	switch {
	case !ok:
		return ""
	case below && options == "inline":
		return keyOf(f.Type, rest)
	case below || key == "":
		return ""
	case indexed:
		return key + "[" + index
	}
	return key
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
