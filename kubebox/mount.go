package kubebox

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Mount is a directory that a pod has from elsewhere.
type Mount struct {
	Type MountType // default: Volume
	// Source is the name of a PersistentVolumeClaim (for a Volume), a Secret or a ConfigMap, which
	// must exist in the namespace. A Volume with the Source "" is the pod's own, and is removed
	// with the pod. A Tmpfs has no Source.
	Source string
	// Target is the absolute path in the pod.
	Target   string
	ReadOnly bool // a Secret and a ConfigMap are read-only in any case
	// Size limits a Tmpfs or a Volume of the pod's own, in bytes. Default: no limit but the pod's
	// memory or Config.EphemeralStorage.
	Size int64
}

// A MountType is a kind of mount. Volume and Tmpfs mean what they mean in package sshbox. There is
// no bind mount: a pod may run on any node, and the restricted Pod Security Standard admits none.
type MountType string

const (
	Volume    MountType = "volume"    // a PersistentVolumeClaim, or the node's disk
	Tmpfs     MountType = "tmpfs"     // memory
	Secret    MountType = "secret"    // a file for each key of a Secret
	ConfigMap MountType = "configMap" // a file for each key of a ConfigMap
)

func (c Config) checkMounts() error {
	taken := map[string]bool{}
	for i, m := range c.Mounts {
		fail := func(field, format string, args ...any) error {
			return fmt.Errorf("Config.Mounts[%d].%s: %s", i, field, fmt.Sprintf(format, args...))
		}
		target := path.Clean(m.Target)
		switch {
		case !path.IsAbs(m.Target) || target == "/":
			return fail("Target", "%q is not an absolute path below /: give one", m.Target)
		case target == wire.Dir || strings.HasPrefix(target, wire.Dir+"/"):
			return fail("Target", "%q is in %s, where boxd is: choose another directory", m.Target,
				wire.Dir)
		case taken[target]:
			return fail("Target", "another mount has %q too: choose another directory", m.Target)
		case m.Size < 0:
			return fail("Size", "%d is negative: 0 stands for no limit", m.Size)
		}
		taken[target] = true
		switch m.Type {
		case "", Volume:
			if m.Source != "" && m.Size != 0 {
				return fail("Size", "the claim %q has a size of its own: leave Size out", m.Source)
			}
		case Tmpfs:
			if m.Source != "" {
				return fail("Source", "%q is set, and a Tmpfs has no source: leave it out",
					m.Source)
			}
		case Secret, ConfigMap:
			if m.Source == "" {
				return fail("Source", "it is empty: give the name of a %s", m.Type)
			}
			if m.Size != 0 {
				return fail("Size", "the size of %q is that of its keys: leave Size out", m.Source)
			}
		default:
			return fail("Type", "%q is no type of pods: give Volume, Tmpfs, Secret or ConfigMap",
				m.Type)
		}
	}
	return nil
}

// volumes returns the pod's volumes, and where its container mounts them.
func (c Config) volumes() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	all := slices.Clone(c.Mounts)
	if c.ReadOnlyRoot && !slices.ContainsFunc(all, func(m Mount) bool {
		return path.Clean(m.Target) == "/tmp"
	}) {
		all = append(all, Mount{Target: "/tmp"})
	}
	for i, m := range all {
		name := "mount-" + strconv.Itoa(i)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: m.volume()})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path.Clean(m.Target),
			ReadOnly: m.ReadOnly || m.Type == Secret || m.Type == ConfigMap})
	}
	return volumes, mounts
}

func (m Mount) volume() (v corev1.VolumeSource) {
	switch {
	case m.Type == Secret:
		v.Secret = &corev1.SecretVolumeSource{SecretName: m.Source}
	case m.Type == ConfigMap:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Source}}
	case m.Source != "":
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Source,
			ReadOnly: m.ReadOnly}
	default:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		if m.Type == Tmpfs {
			v.EmptyDir.Medium = corev1.StorageMediumMemory
		}
		if m.Size > 0 {
			v.EmptyDir.SizeLimit = resource.NewQuantity(m.Size, resource.BinarySI)
		}
	}
	return v
}
