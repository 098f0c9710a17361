package kubebox

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestRole checks that an account with only Role can use the whole package.
func TestRole(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	as := c
	as.Kubeconfig = kubetest.Shared(t).Account(t, c.Namespace, "only", Role)
	said := make(chan string, 100)
	b := newBox(t, Config{Cluster: as, Keep: true, Progress: func(p Progress) { said <- p.Status }})
	require.NotEmpty(t, said)
	does(t, b, "X=1", "")
	require.NoError(t, b.Detach())
	list, err := as.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	again, err := as.Attach(t.Context(), list[0].ID)
	require.NoError(t, err)
	does(t, again, "echo $X", "1\n")
	require.NoError(t, again.Close())

	p, err := NewPool(Config{Cluster: as, Image: testImage}, "role", 1)
	require.NoError(t, err)
	defer p.Close()
	require.Eventually(t, func() bool { return p.Ready() == 1 }, testenv.Limit, 20*time.Millisecond)
	pooled, err := p.Get(t.Context(), Handover{})
	require.NoError(t, err)
	require.NoError(t, pooled.Close())
	require.NoError(t, p.Close())
	_, err = as.Reap(t.Context())
	require.NoError(t, err)
	require.NoError(t, as.Prune(t.Context()))
}

// TestBoxdImage brings boxd by an image into a read-only image that has neither sha256sum nor head.
func TestBoxdImage(t *testing.T) {
	t.Parallel()
	if os.Getenv(kubetest.Env) != "" {
		t.Skip("the cluster of " + kubetest.Env + " need not have the image " + kubetest.BoxdImage)
	}
	b := newBox(t, Config{Cluster: cluster(t), BoxdImage: kubetest.BoxdImage,
		Image: "sandshell-shell", ReadOnlyRoot: true})
	does(t, b, "X=1; echo $X", "1\n")
	does(t, b, "(echo x >/.sandshell/boxd) 2>/dev/null || echo read-only", "read-only\n")
	require.NoError(t, b.Files().WriteFile(t.Context(), "/tmp/f", []byte("content"), 0o600))
	data, err := b.Files().ReadFile(t.Context(), "/tmp/f", 0)
	require.NoError(t, err)
	require.Equal(t, "content", string(data))
}

// TestSPDY reaches a box through a proxy that lets no websocket through.
func TestSPDY(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	config := rest.CopyConfig(kubetest.Shared(t).Config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
	to, err := url.Parse(config.Host)
	require.NoError(t, err)
	through, err := rest.TransportFor(config)
	require.NoError(t, err)
	var refused, carried atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
			refused.Add(1)
			http.Error(w, "no websockets here", http.StatusForbidden)
			return
		case strings.HasPrefix(r.Header.Get("Upgrade"), "SPDY"):
			carried.Add(1)
		}
		p := httputil.NewSingleHostReverseProxy(to)
		p.Transport, p.FlushInterval = through, -1 // watches
		p.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	c.Kubeconfig = kubeconfig(t, func(cluster *api.Cluster, a *api.AuthInfo) {
		cluster.Server, cluster.CertificateAuthorityData, cluster.CertificateAuthority = proxy.URL,
			nil, ""
		*a = api.AuthInfo{}
	})
	b := newBox(t, Config{Cluster: c})
	does(t, b, "X=1; echo $X", "1\n")
	r, err := b.Execute(t.Context(), "seq 100000")
	require.NoError(t, err)
	require.Len(t, r.Output, 588895)
	require.NoError(t, b.Close())
	require.NotZero(t, refused.Load())
	require.NotZero(t, carried.Load())
}

// TestSSHConfig reaches a box by a person's ssh and scp, through kubectl.
func TestSSHConfig(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	for _, program := range []string{"kubectl", "ssh", "scp"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skipf("this machine has no %s: install it", program)
		}
	}
	b := newBox(t, Config{Cluster: c})
	path, err := b.SSHConfig(t.Context())
	require.NoError(t, err)
	run := func(name string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, append([]string{"-F", path}, args...)...)
		// The environment names no kubeconfig.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		require.NoErrorf(t, err, "%s", out)
		return string(out)
	}
	require.Equal(t, "1000\n", run("ssh", b.PodName(), "id -u"))
	file := t.TempDir() + "/f"
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	run("scp", "-q", file, b.PodName()+":/tmp/f")
	does(t, b, "cat /tmp/f; echo", "content\n")
	require.NoError(t, b.Close())
	require.NoFileExists(t, path)
}

// TestPlugins checks that a plugin is installed when New returns.
func TestPlugins(t *testing.T) {
	t.Parallel()
	p := plugin.Plugin{Name: "greets", Env: []string{"GREETING=hello"}, Files: fstest.MapFS{
		"setup.sh": {Data: []byte("#!/bin/sh\nmkdir bin && mv greet bin && echo \"$PWD/bin\" " +
			">>\"$SANDSHELL_PATH\"\n")},
		"greet": {Data: []byte("#!/bin/sh\necho \"$GREETING, $1\"\n")},
	}}
	b := newBox(t, Config{Cluster: cluster(t), Plugins: []plugin.Plugin{p}})
	does(t, b, "greet ann", "hello, ann\n")
	require.NoError(t, b.InitPlugins(t.Context(), p))
	r, err := b.Execute(t.Context(), fmt.Sprintf("exec sh -c %q", "greet bob"))
	require.NoError(t, err)
	require.Equal(t, "hello, bob\n", r.Output)
}
