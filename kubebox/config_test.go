package kubebox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestConfigWrong(t *testing.T) {
	for has, c := range map[string]Config{
		"Config.Linger":   {Linger: time.Millisecond},
		"Config.Deadline": {Deadline: -1},
		"Config.Pull":     {Pull: "often"},
		"Config.Network":  {Network: "bridge"},
		"can go around":   {Outward: true, Network: NetworkCluster},
		"new privileges":  {Outward: true, AllowNewPrivileges: true},
		"Config.Dir":      {Dir: "tmp"},
		"Config.Env[0]":   {Env: []string{"A"}},
		"Config.Image":    {Image: "Sand Shell"},
		"Config.Shell":    {Shell: []string{""}},
		"Config.Name":     {Name: "A b"},
		"Config.Labels":   {Labels: map[string]string{"sandshell.box": "x"}},
		`Config.Mounts[0].Target: "/.sandshell/x" is in /.sandshell`: {
			Mounts: []Mount{{Target: "/.sandshell/x"}}},
		`Config.Mounts[0].Target: "/" is not an absolute path below /`: {
			Mounts: []Mount{{Target: "/"}}},
		`Config.Mounts[1].Target: another mount has "/a/" too`: {
			Mounts: []Mount{{Target: "/a"}, {Target: "/a/"}}},
		`Config.Mounts[0].Source: "x" is set, and a Tmpfs has no source`: {
			Mounts: []Mount{{Target: "/a", Type: Tmpfs, Source: "x"}}},
		"Config.Mounts[0].Source: it is empty: give the name of a secret": {
			Mounts: []Mount{{Target: "/a", Type: Secret}}},
		`Config.Mounts[0].Size: the claim "x" has a size`: {
			Mounts: []Mount{{Target: "/a", Source: "x", Size: 1}}},
		"Config.Mounts[0].Size: -1 is negative: 0 stands for no limit": {
			Mounts: []Mount{{Target: "/a", Size: -1}}},
		`Config.Mounts[0].Type: "bind" is no type of pods`: {
			Mounts: []Mount{{Target: "/a", Type: "bind"}}},
	} {
		_, err := c.withDefaults()
		require.ErrorContains(t, err, has)
	}
	for _, user := range []string{"user", "-1", "1:x", ":"} {
		_, err := Config{User: user}.spec()
		require.ErrorContains(t, err, "Config.User", user)
	}
}

// TestSpec checks the pod that a Config describes. By default it meets the restricted standard.
// Root has the capabilities that a package manager needs.
func TestSpec(t *testing.T) {
	c, err := Config{CPUs: 1.5, Memory: 1 << 30, Mounts: []Mount{
		{Target: "/m", Type: Tmpfs, Size: 1 << 20}}, ReadOnlyRoot: true,
		Deadline: time.Hour}.withDefaults()
	require.NoError(t, err)
	s, err := c.spec()
	require.NoError(t, err)
	pod, box := s.Pod.Spec, s.Pod.Spec.Containers[0]
	require.Equal(t, int64(1000), *pod.SecurityContext.RunAsUser)
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.False(t, *pod.AutomountServiceAccountToken)
	require.False(t, *box.SecurityContext.AllowPrivilegeEscalation)
	require.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		box.SecurityContext.Capabilities)
	require.Equal(t, box.Resources.Limits, box.Resources.Requests)
	require.Equal(t, "1500m", box.Resources.Limits.Cpu().String())
	require.Len(t, pod.Volumes, 2) // and /tmp
	require.Equal(t, int64(3600), *pod.ActiveDeadlineSeconds)
	require.Equal(t, "none", s.Pod.Labels["sandshell.network"])

	c.PullSecrets, c.NodeSelector, c.Runtime, c.ServiceAccount = []string{"registry"},
		map[string]string{"disk": "ssd"}, "gvisor", "builder"
	c.Tolerations = []Toleration{{Key: "sandboxes", Operator: "Exists"}}
	c.Mounts = []Mount{{Type: Volume, Source: "data", Target: "/data", ReadOnly: true},
		{Type: Secret, Source: "keys", Target: "/keys"}}
	s, err = c.spec()
	require.NoError(t, err)
	pod = s.Pod.Spec
	require.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, pod.ImagePullSecrets)
	require.Equal(t, c.NodeSelector, pod.NodeSelector)
	require.Equal(t, []corev1.Toleration{
		{Key: "sandboxes", Operator: corev1.TolerationOpExists}}, pod.Tolerations)
	require.Equal(t, "gvisor", *pod.RuntimeClassName)
	require.Equal(t, "builder", pod.ServiceAccountName)
	require.True(t, *pod.AutomountServiceAccountToken, "it is what the account is for")
	require.Equal(t, "data", pod.Volumes[0].PersistentVolumeClaim.ClaimName)
	require.Equal(t, "keys", pod.Volumes[1].Secret.SecretName)
	require.Equal(t, "/data", pod.Containers[0].VolumeMounts[0].MountPath)
	require.True(t, pod.Containers[0].VolumeMounts[0].ReadOnly)
	require.Equal(t, "/keys", pod.Containers[0].VolumeMounts[1].MountPath)

	c.User, c.CapDrop, c.CapAdd = "root", []string{"CAP_KILL"}, []string{"net_raw"}
	s, err = c.spec()
	require.NoError(t, err)
	require.Nil(t, s.Pod.Spec.SecurityContext.RunAsNonRoot)
	require.Equal(t, []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "NET_RAW",
		"SETGID", "SETUID"},
		s.Pod.Spec.Containers[0].SecurityContext.Capabilities.Add)
}
