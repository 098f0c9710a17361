package kubebox

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig writes a changed kubeconfig of the test cluster, and returns its path.
func kubeconfig(t *testing.T, change func(*api.Cluster, *api.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubetest.Shared(t).Kubeconfig)
	require.NoError(t, err)
	in := config.Contexts[config.CurrentContext]
	change(config.Clusters[in.Cluster], config.AuthInfos[in.AuthInfo])
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// TestErrors checks that the error of New has the reason, and says what to do.
func TestErrors(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := "https://" + l.Addr().String()
	require.NoError(t, l.Close())
	taken := newBox(t, Config{Cluster: c})
	t.Run("each", func(t *testing.T) { // side by side: they wait
		for name, k := range map[string]struct {
			change func(*Config)
			reason Reason
			has    string
		}{
			"unschedulable": {func(c *Config) {
				c.CPUs, c.StartTimeout = 1000, 2*time.Second
			}, Unschedulable, "Insufficient cpu"},
			"image": {func(c *Config) {
				c.Image, c.Pull = "no-such-image", PullNever
			}, NoImage, "no-such-image"},
			"root": {func(c *Config) { c.User = "root" }, NotAdmitted, "Config.User"},
			"secret": {func(c *Config) {
				c.Env = nil
				c.Mounts = []Mount{{Type: Secret, Source: "none", Target: "/s"}}
				c.StartTimeout = 5 * time.Second
			}, NotStarted, "StartTimeout"},
			"name": {func(c *Config) { c.Name = taken.PodName() }, NotAdmitted, "Config.Name"},
			"namespace": {func(c *Config) {
				c.Namespace, c.Network = "no-such-namespace", NetworkCluster
			}, NotAdmitted, "Config.Namespace"},
			"away": {func(c *Config) {
				c.Kubeconfig = kubeconfig(t, func(c *api.Cluster, _ *api.AuthInfo) {
					c.Server = nobody
				})
			}, Unreachable, "does not answer"},
			"forbidden": {func(c *Config) {
				c.Kubeconfig = kubeconfig(t, func(_ *api.Cluster, a *api.AuthInfo) {
					a.Impersonate = "nobody"
				})
				c.Network = NetworkCluster
			}, Forbidden, `may not create pods in namespace "` + c.Namespace + `"`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				config := Config{Cluster: c, Image: testImage}
				k.change(&config)
				_, err := New(t.Context(), config)
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, k.reason, e.Reason, err)
				require.ErrorContains(t, err, k.has)
			})
		}
	})
	t.Run("quota", func(t *testing.T) {
		_, err := kubetest.Shared(t).Core(t).ResourceQuotas(c.Namespace).Create(t.Context(),
			&corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: "one"},
				Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
					corev1.ResourcePods: resource.MustParse("0")}},
			}, metav1.CreateOptions{})
		require.NoError(t, err)
		var e *Error
		require.Eventually(t, func() bool { // the quota is enforced once its controller has counted
			b, err := New(t.Context(), Config{Cluster: c, Image: testImage})
			if err == nil {
				require.NoError(t, b.Close())
				return false
			}
			require.ErrorAs(t, err, &e)
			return e.Reason == Quota
		}, testenv.Limit, 10*time.Millisecond)
	})
}
