package kubebox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// spec returns the pod that a Config describes.
func (c Config) spec() (kube.Spec, error) {
	s := kube.Spec{Name: c.Name, BoxdImage: c.BoxdImage, Linger: c.Linger, Keep: c.Keep,
		Outward: c.Outward, Patience: c.StartTimeout + c.Linger, Logger: c.Logger}
	if c.Progress != nil {
		s.Progress = func(pod, status, message string) {
			c.Progress(Progress{pod, status, message})
		}
	}
	user, group, err := c.user()
	if err != nil {
		return s, err
	}
	yes, no := true, false
	box := corev1.Container{
		Image: c.Image,
		ImagePullPolicy: map[PullPolicy]corev1.PullPolicy{PullMissing: corev1.PullIfNotPresent,
			PullAlways: corev1.PullAlways, PullNever: corev1.PullNever}[c.Pull],
		Resources: c.resources(),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &c.AllowNewPrivileges,
			ReadOnlyRootFilesystem:   &c.ReadOnlyRoot,
			Capabilities:             c.capabilities(user == 0),
		},
	}
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		// Kubernetes replaces $(NAME) by the value of another variable, and $$ by $.
		box.Env = append(box.Env, corev1.EnvVar{Name: name,
			Value: strings.ReplaceAll(value, "$", "$$")})
	}
	o := &s.Pod
	o.Labels, o.Annotations = map[string]string{}, c.Annotations
	for k, v := range c.Labels {
		o.Labels[k] = v
	}
	if c.Network == NetworkNone {
		o.Labels[kube.NetworkLabel] = NetworkNone
	}
	if c.pool != "" {
		o.Labels[kube.PoolLabel] = c.pool
		o.Labels[kube.ClaimLabel] = kube.Making
	}
	o.Spec = corev1.PodSpec{
		ServiceAccountName: c.ServiceAccount, AutomountServiceAccountToken: &no,
		EnableServiceLinks: &no,
		NodeSelector:       c.NodeSelector, Tolerations: c.tolerations(),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: &user, RunAsGroup: &group, FSGroup: &group,
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile: &corev1.SeccompProfile{
				Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if c.ServiceAccount != "" {
		o.Spec.AutomountServiceAccountToken = &yes
	}
	if user != 0 {
		o.Spec.SecurityContext.RunAsNonRoot = &yes
	}
	if c.Runtime != "" {
		o.Spec.RuntimeClassName = &c.Runtime
	}
	if c.Outward {
		// boxd answers; no search list adds to a name, and any user may have the port 53.
		o.Spec.DNSPolicy = corev1.DNSNone
		o.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}}
		o.Spec.SecurityContext.Sysctls = []corev1.Sysctl{
			{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	if c.Deadline > 0 {
		o.Spec.ActiveDeadlineSeconds = new(int64(c.Deadline.Seconds()))
	}
	for _, name := range c.PullSecrets {
		o.Spec.ImagePullSecrets = append(o.Spec.ImagePullSecrets,
			corev1.LocalObjectReference{Name: name})
	}
	o.Spec.Volumes, box.VolumeMounts = c.volumes()
	o.Spec.Containers = []corev1.Container{box}
	return s, nil
}

func (c Config) tolerations() []corev1.Toleration {
	var all []corev1.Toleration
	for _, t := range c.Tolerations {
		k := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator),
			Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		if t.For != nil {
			k.TolerationSeconds = new(int64(t.For.Seconds()))
		}
		all = append(all, k)
	}
	return all
}

// user returns the ids that everything runs as.
func (c Config) user() (user, group int64, err error) {
	switch c.User {
	case "":
		return 1000, 1000, nil
	case "root":
		return 0, 0, nil
	}
	u, g, both := strings.Cut(c.User, ":")
	user, err = strconv.ParseInt(u, 10, 32)
	group = user
	if both && err == nil {
		group, err = strconv.ParseInt(g, 10, 32)
	}
	if err != nil || user < 0 || group < 0 {
		return 0, 0,
			fmt.Errorf(`Config.User: a cluster cannot look up %q: give "uid" or "uid:gid" in `+
				`numbers, or "root"`, c.User)
	}
	return user, group, nil
}

// resources returns the requests and the limits, which are equal: a box gets what it was promised,
// and no more.
func (c Config) resources() corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	if c.CPUs > 0 {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(c.CPUs*1000+0.5),
			resource.DecimalSI)
	}
	if c.Memory > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(c.Memory, resource.BinarySI)
	}
	if c.EphemeralStorage > 0 {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(c.EphemeralStorage,
			resource.BinarySI)
	}
	if len(list) == 0 {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Limits: list, Requests: list.DeepCopy()}
}

// usualCapabilities are those that a package manager needs. boxd needs none.
var usualCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID",
	"SETUID"}

// capabilities returns the capabilities that the pod drops and adds. It drops all, and adds those
// that it keeps. Only root has any.
func (c Config) capabilities(root bool) *corev1.Capabilities {
	canonical := func(name string) string {
		return strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	}
	var drop, add []string
	for _, name := range c.CapDrop {
		drop = append(drop, canonical(name))
	}
	if root && !slices.Contains(drop, "ALL") {
		add = slices.DeleteFunc(slices.Clone(usualCapabilities), func(name string) bool {
			return slices.Contains(drop, name)
		})
	}
	for _, name := range c.CapAdd {
		add = append(add, canonical(name))
	}
	slices.Sort(add)
	caps := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	for _, name := range slices.Compact(add) {
		caps.Add = append(caps.Add, corev1.Capability(name))
	}
	return caps
}
