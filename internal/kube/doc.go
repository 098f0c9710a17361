// Package kube makes pods that boxd runs in, and talks to the API server about them: it is to
// Kubernetes what package engine is to Docker. It uses the few kinds of objects that it needs by
// client-go's REST client, since client-go's clientset brings hundreds.
package kube
