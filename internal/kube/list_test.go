package kube

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestReapByServersClock checks that Reap takes a pod's age from the API server's clock, because
// this machine's clock may be wrong.
func TestReapByServersClock(t *testing.T) {
	for name, k := range map[string]struct {
		ahead, age time.Duration
		removed    int
	}{
		"new":               {0, time.Minute, 0},
		"old":               {0, 11 * time.Minute, 1},
		"new, server late":  {-time.Hour, time.Minute, 0},
		"old, server late":  {-time.Hour, 11 * time.Minute, 1},
		"new, server ahead": {time.Hour, time.Minute, 0},
		"old, server ahead": {time.Hour, 11 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().Add(k.ahead)
			pod := corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "p", UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-k.age)),
					Labels:      map[string]string{BoxLabel: "b", PIDLabel: "1"},
					Annotations: map[string]string{hostNote: "another"},
				},
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Image: "i"}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending},
			}
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
					w.Header().Set("Content-Type", "application/json")
					if r.Method == http.MethodGet {
						json.NewEncoder(w).Encode(corev1.PodList{
							TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
							Items:    []corev1.Pod{pod}})
					} else {
						json.NewEncoder(w).Encode(pod)
					}
				}))
			defer server.Close()
			c, err := open(Endpoint{Namespace: "ns"}, &rest.Config{Host: server.URL},
				slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer c.Close()
			removed, err := c.Reap(t.Context(), slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			require.Equal(t, k.removed, removed)
		})
	}
}
