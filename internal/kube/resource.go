package kube

import (
	"context"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
)

// An object is one of the API server's.
type object interface {
	runtime.Object
	metav1.Object
}

// A Resource is the objects of a kind in a namespace. It is a gentype.Client whose calls print
// nothing: client-go logs some errors besides returning them, to the program's standard error if
// the context has no logger.
type Resource[T object] struct{ client *gentype.Client[T] }

// A ListedResource is a Resource whose objects can be listed.
type ListedResource[T object, L runtime.Object] struct {
	Resource[T]
	list *gentype.ClientWithList[T, L]
}

// listed returns the resource of a client.
func listed[T object, L runtime.Object](c *gentype.ClientWithList[T, L]) *ListedResource[T, L] {
	return &ListedResource[T, L]{Resource[T]{c.Client}, c}
}

// quiet returns a context whose calls log nothing, unless the caller has given it a logger.
func quiet(ctx context.Context) context.Context {
	if _, err := logr.FromContext(ctx); err == nil {
		return ctx
	}
	return logr.NewContext(ctx, logr.Discard())
}

// Get returns an object.
func (r *Resource[T]) Get(ctx context.Context, name string, o metav1.GetOptions) (T, error) {
	return r.client.Get(quiet(ctx), name, o)
}

// Create makes an object.
func (r *Resource[T]) Create(ctx context.Context, v T, o metav1.CreateOptions) (T, error) {
	return r.client.Create(quiet(ctx), v, o)
}

// Patch changes an object.
func (r *Resource[T]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte,
	o metav1.PatchOptions) (T, error) {
	return r.client.Patch(quiet(ctx), name, kind, data, o)
}

// Delete removes an object.
func (r *Resource[T]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.client.Delete(quiet(ctx), name, o)
}

// Watch returns the changes of objects.
func (r *Resource[T]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return r.client.Watch(quiet(ctx), o)
}

// List returns objects.
func (r *ListedResource[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	return r.list.List(quiet(ctx), o)
}
