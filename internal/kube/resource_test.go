package kube

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestQuiet has an API server that does not end its answer. The error is returned, and nothing is
// printed to the program's standard error.
func TestQuiet(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind": "Pod`))
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(stop)
	c, err := open(Endpoint{Namespace: "ns"}, &rest.Config{Host: s.URL},
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer c.Close()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = write
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, failed := c.Pods.Get(ctx, "pod", metav1.GetOptions{})
	os.Stderr = stderr
	require.NoError(t, write.Close())
	said := make([]byte, 1<<10)
	n, _ := read.Read(said)
	require.ErrorContains(t, failed, "deadline")
	require.Empty(t, string(said[:n]))
}
