package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// A Spec says which box is wanted, whatever the place that makes it. A field that is zero leaves
// the choice to the place. A field that the place cannot honour is an error of Place.New that names
// the field: it is never ignored.
type Spec struct {
	// Image is the name of the image that the box is made from.
	Image string `spec:"image"`
	// User is the user that everything runs as, by name or by id.
	User string `spec:"user"`
	// Dir is the absolute path of the directory in which sessions, jobs and Runs start. It must
	// exist.
	Dir string `spec:"dir"`
	// Env is added to the environment of the image or the machine, each "NAME=value". If a name
	// occurs several times, the last entry counts. It is not for secrets: in most places, whoever
	// can list boxes can read it.
	Env []string `spec:"env"`

	// Memory is how much memory the box may use, in bytes.
	Memory int64 `spec:"memory,size"`
	// CPUs is how much processor time the box may use, in processors: 1.5 is one and a half.
	CPUs float64 `spec:"cpus"`
	// PIDs is how many processes and threads the box may have.
	PIDs int64 `spec:"pids"`
	// Disk is how much the box may write into its image, in bytes.
	Disk int64 `spec:"disk,size"`
	// Network is what the box can reach.
	Network Network `spec:"network"`

	// Mounts are directories and files that the box has in addition to its image.
	Mounts []Mount `spec:"mounts"`
	// Labels are names and values that the place keeps with the box and shows where it lists boxes.
	// Names that are "sandshell" or begin with "sandshell." are reserved.
	Labels map[string]string `spec:"labels"`
}

// A Network is what a box can reach: one of the constants, or the name of a network of the place,
// such as one that "docker network ls" shows.
type Network string

const (
	// NetworkDefault leaves the choice to the place.
	NetworkDefault Network = ""
	// NetworkNone is no network at all. Everything works, Dial and Listen too.
	NetworkNone Network = "none"
	// NetworkOpen is whatever the place lets boxes reach: in a container what the engine's default
	// bridge reaches, in a pod what the cluster lets pods reach.
	NetworkOpen Network = "open"
)

// A Mount is a directory or a file that a box has in addition to its image.
type Mount struct {
	// Type is the kind of mount. Default: Bind.
	Type MountType `spec:"type"`
	// Source is, for a Bind, a path on the place's machine, which must exist. For a Volume it is
	// the volume's name; a container's engine makes the volume if there is none. A Volume without
	// Source is removed with the box. A Tmpfs has no Source.
	Source string `spec:"source"`
	// Target is the absolute path in the box.
	Target string `spec:"target"`
	// ReadOnly keeps the box from writing to the mount.
	ReadOnly bool `spec:"read_only"`
	// Size limits a Tmpfs, in bytes. Default: no limit but the box's memory.
	Size int64 `spec:"size,size"`
}

// A MountType is a kind of mount. A place may have others beside the constants.
type MountType string

const (
	Bind   MountType = "bind"   // a path on the place's machine
	Volume MountType = "volume" // a volume that the place keeps
	Tmpfs  MountType = "tmpfs"  // memory
)

// A SpecError says which field of a Spec is wrong, or which field a place cannot honour. If the
// place cannot honour the field, errors.Is(err, errors.ErrUnsupported) reports true.
type SpecError struct {
	Field       string // such as "Memory" or "Mounts[0].Target"
	Reason      string // what is wrong, and what to do
	Unsupported bool   // the field is well formed, and this place has nothing for it
}

// Error returns the field and the reason.
func (e *SpecError) Error() string { return "Spec." + e.Field + ": " + e.Reason }

// Is reports whether target is errors.ErrUnsupported and the place cannot honour the field.
func (e *SpecError) Is(target error) bool {
	return target == errors.ErrUnsupported && e.Unsupported
}

// Check returns a *SpecError that names the first field that no place could honour, or nil. It does
// not look at anything outside the Spec.
func (s Spec) Check() error {
	wrong := func(field, format string, args ...any) error {
		return &SpecError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	if s.Dir != "" && !path.IsAbs(s.Dir) {
		return wrong("Dir", "%q is not absolute: give a path that begins with /", s.Dir)
	}
	for i, kv := range s.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) {
			// The entry is not quoted, because its value may be a secret.
			return wrong(fmt.Sprintf("Env[%d]", i), "it is not NAME=value: write it so")
		}
	}
	for _, limit := range []struct {
		field    string
		negative bool
	}{{"Memory", s.Memory < 0}, {"CPUs", s.CPUs < 0}, {"PIDs", s.PIDs < 0}, {"Disk", s.Disk < 0}} {
		if limit.negative {
			return wrong(limit.field,
				"it is negative: leave it out for the place's default, or give more than 0")
		}
	}
	targets := map[string]int{}
	for i, m := range s.Mounts {
		target := path.Clean(m.Target)
		first, twice := targets[target]
		switch {
		case !path.IsAbs(m.Target) || target == "/":
			return wrong(fmt.Sprintf("Mounts[%d].Target", i),
				"%q is not an absolute path below /: give one", m.Target)
		case twice:
			return wrong(fmt.Sprintf("Mounts[%d].Target", i),
				"%q is the Target of Mounts[%d] too: choose another", m.Target, first)
		case m.Size < 0:
			return wrong(fmt.Sprintf("Mounts[%d].Size", i),
				"%d is negative: leave it out for no limit, or give bytes", m.Size)
		}
		targets[target] = i
	}
	for name := range s.Labels {
		if name == "" || name == "sandshell" || strings.HasPrefix(name, "sandshell.") {
			return wrong("Labels", "the name %q is empty or reserved: give another name", name)
		}
	}
	return nil
}
