package pods

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestRole checks that the error of an account that lacks a right names the verb and the resource,
// and that nothing is left of the box. TestPlace shows that no other rights are needed.
func TestRole(t *testing.T) {
	t.Parallel()
	const pods, claims = "[create, get, list, watch, patch, delete]",
		"[configmaps]\n  verbs: [create, get, delete]"
	c := cluster(t)
	t.Cleanup(func() { // an account that may not watch does not wait for the pod's end
		require.Eventually(t, func() bool {
			boxes, err := c.List(context.Background())
			return err == nil && len(boxes) == 0
		}, testenv.Limit, 20*time.Millisecond)
	})
	for name, r := range map[string]struct{ whole, less, says string }{
		"create-pods":  {pods, "[get, list, watch, patch, delete]", "may not create pods"},
		"list-pods":    {pods, "[create, get, watch, patch, delete]", "may not list pods"},
		"watch-pods":   {pods, "[create, get, list, patch, delete]", "may not watch pods"},
		"patch-pods":   {pods, "[create, get, list, watch, delete]", "may not patch pods"},
		"exec":         {"pods/exec", "pods/log", "may not create pods/exec"},
		"attach":       {"pods/attach", "pods/log", "may not create pods/attach"},
		"get-policies": {"networkpolicies", "ingresses", "may not get networkpolicies"},
		"create-configmaps": {claims, "[configmaps]\n  verbs: [get, delete]",
			"may not create configmaps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 1, strings.Count(Role, r.whole))
			as := c
			as.Kubeconfig = kubetest.Shared(t).Account(t, c.Namespace, name,
				strings.Replace(Role, r.whole, r.less, 1))
			specs, err := service.NewSpecs(&service.Spec{ID: "small",
				Config: sshbox.Config{Image: "sandshell-busybox", Network: "none", Dir: "/tmp"}})
			require.NoError(t, err)
			s, err := service.New(service.Config{Place: New(kubebox.Config{Cluster: as}),
				Name: strings.ReplaceAll(name, "-", ""), Specs: specs,
				Secret: []byte(strings.Repeat("s", 32)), Every: time.Hour})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = s.Start(t.Context(), service.StartOptions{ID: "a"})
			var e *kubebox.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, kubebox.Forbidden, e.Reason)
			require.ErrorContains(t, err, r.says)
			require.Contains(t, e.Do, "Role")
		})
	}
}
