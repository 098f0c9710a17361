package kubebox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestNewError checks that an error of package kube keeps its reason and text.
func TestNewError(t *testing.T) {
	for public, internal := range map[Reason]kube.Reason{
		Unschedulable: kube.Unschedulable, NoImage: kube.NoImage, Quota: kube.Quota,
		Forbidden: kube.Forbidden, NotAdmitted: kube.NotAdmitted, NotStarted: kube.NotStarted,
		Ended: kube.Ended, Unreachable: kube.Unreachable,
	} {
		from := &kube.Error{Reason: internal, Said: "said\x1b[m", Do: "do this", Err: io.EOF}
		var e *Error
		require.True(t, errors.As(newError(from), &e))
		require.Equal(t, public, e.Reason)
		require.Equal(t, from.Error(), e.Error())
		require.ErrorIs(t, e, io.EOF)
	}
}

// TestRefused checks that an API server's refusal is an Error, with what to do, from each method.
func TestRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403,
			Message: `pods is forbidden: User "u" cannot list resource "pods"`})
	}))
	defer server.Close()
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server.URL}
	config.Contexts["c"] = &api.Context{Cluster: "c", Namespace: "ns"}
	config.CurrentContext = "c"
	c := Cluster{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	require.NoError(t, clientcmd.WriteToFile(*config, c.Kubeconfig))
	for name, call := range map[string]func(context.Context) error{
		"New": func(ctx context.Context) error {
			_, err := New(ctx, Config{Cluster: c})
			return err
		},
		"List":   func(ctx context.Context) error { _, err := c.List(ctx); return err },
		"Attach": func(ctx context.Context) error { _, err := c.Attach(ctx, "box"); return err },
		"Reap":   func(ctx context.Context) error { _, err := c.Reap(ctx); return err },
		"Remove": func(ctx context.Context) error { return c.Remove(ctx, "box") },
		"Prune":  c.Prune,
	} {
		err := call(t.Context())
		var e *Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, Forbidden, e.Reason, name)
		require.Contains(t, e.Do, "kubebox.Role", name)
		require.ErrorContains(t, err, "kubebox: ", name)
	}
}
