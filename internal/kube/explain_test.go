package kube

import (
	"errors"
	"io"
	"log/slog"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	c, err := open(Endpoint{Namespace: "ns"}, &rest.Config{Host: "https://127.0.0.1:1"},
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for name, k := range map[string]struct {
		err    error
		verb   string
		reason Reason
		has    string
	}{
		"quota": {apierrors.NewForbidden(pods, "p",
			errors.New("exceeded quota: q, requested: pods=1")), "create", Quota, "ResourceQuota"},
		"unsaid": {apierrors.NewForbidden(pods, "p",
			errors.New("failed quota: q: must specify limits.cpu")), "create", Quota,
			"Config.CPUs"},
		"security": {apierrors.NewForbidden(pods, "p",
			errors.New(`violates PodSecurity "restricted:latest": runAsNonRoot != true`)), "create",
			NotAdmitted, "Config.User"},
		"limits": {apierrors.NewForbidden(pods, "p",
			errors.New("maximum cpu usage per Container is 1")), "create", NotAdmitted,
			"maximum cpu"},
		"forbidden": {apierrors.NewForbidden(pods, "p",
			errors.New(`User "u" cannot create resource "pods"`)), "create", Forbidden,
			`may not create pods in namespace "ns"`},
		"exec": {apierrors.NewForbidden(pods, "p",
			errors.New(`User "u" cannot get resource "pods/exec"`)), "exec", Forbidden,
			"kubebox.Role"},
		"unknown": {apierrors.NewUnauthorized("Unauthorized"), "create", Forbidden,
			"does not know the account"},
		"taken": {apierrors.NewAlreadyExists(pods, "p"), "create", NotAdmitted, "Config.Name"},
		"namespace": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
			"create", NotAdmitted, "Config.Namespace"},
		"away": {&url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: io.EOF}, "get",
			Unreachable, "https://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Explain(k.err, k.verb, "pods", "p")
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, k.reason, e.Reason)
			require.ErrorContains(t, err, k.has)
			require.ErrorIs(t, err, k.err)
		})
	}
	require.ErrorContains(t, c.Explain(io.EOF, "get", "pods", "p"), "get pods p: EOF")
}
