// Package kube makes pods that boxd runs in, and talks to the API server about them. Package docker
// does the same for containers. It uses client-go's REST client for the few kinds of objects that
// it needs, because client-go's clientset brings hundreds.
package kube
