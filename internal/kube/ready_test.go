package kube

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// TestProgressPanics checks that Ready returns an error if Progress panics.
func TestProgressPanics(t *testing.T) {
	event := &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		Reason: "Scheduled"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "ADDED",
			Object: runtime.RawExtension{Object: event}})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	log := slog.New(slog.DiscardHandler)
	c, err := open(Endpoint{Namespace: "ns"}, &rest.Config{Host: server.URL}, log)
	require.NoError(t, err)
	defer c.Close()
	called := make(chan string, 1)
	p := c.newPod(Spec{Logger: log, Progress: func(_, status, _ string) {
		called <- status
		panic("oops")
	}})
	stop := p.reportProgress(t.Context())
	require.Equal(t, "Scheduled", <-called)
	require.ErrorContains(t, stop(), "Config.Progress panicked: oops")
}
