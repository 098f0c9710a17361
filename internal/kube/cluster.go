package kube

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sandshell/sandshell/internal/remotebox"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// An Endpoint names a namespace of a cluster.
type Endpoint struct {
	Kubeconfig string // a file; "" means kubectl's default, and in a pod the service account
	Context    string // a context of the kubeconfig; "" means the current one
	Namespace  string // "" means the context's, or the pod's own
	// NewError makes the public error of an Error. If it is nil, errors are *Error.
	NewError func(*Error) error
}

// A Cluster is a namespace of a cluster. Its methods may be called from several goroutines.
type Cluster struct {
	Endpoint   // Namespace is never ""
	Pods       *ListedResource[*corev1.Pod, *corev1.PodList]
	Events     *ListedResource[*corev1.Event, *corev1.EventList]
	ConfigMaps *Resource[*corev1.ConfigMap]
	Policies   *Resource[*networkingv1.NetworkPolicy]
	files      []string // the kubeconfig files; none in a pod without a kubeconfig
	log        *slog.Logger
	config     *rest.Config
	core       *rest.RESTClient
	clock      *serverClock // sees the answers to all requests except streams
	spdy       atomic.Bool  // streams use SPDY, because something on the way refuses websockets
}

// orphans are this process's, in all clusters. They cannot belong to a Cluster, because each box
// has a Cluster of its own, which is closed with the box.
var orphans remotebox.Orphans

// kinds returns the kinds of objects that this package knows.
var kinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	corev1.AddToScheme(s)
	networkingv1.AddToScheme(s)
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
})

// Open finds the cluster. It makes no request.
func Open(e Endpoint, log *slog.Logger) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = e.Kubeconfig
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: e.Context})
	config, err := from.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (\"kubectl config get-contexts\" lists the "+
			"contexts; KUBECONFIG or Config.Kubeconfig names a file): %w", err)
	}
	if e.Namespace == "" {
		if e.Namespace, _, err = from.Namespace(); err != nil {
			return nil, fmt.Errorf("find the namespace: %w", err)
		}
	}
	c, err := open(e, config, log)
	if err != nil {
		return nil, err
	}
	if raw, err := from.RawConfig(); err == nil && e.Context == "" {
		c.Context = raw.CurrentContext
	}
	for _, file := range rules.GetLoadingPrecedence() {
		if _, err := os.Stat(file); err == nil {
			c.files = append(c.files, file)
		}
	}
	return c, nil
}

// Kubectl returns a kubectl command line that uses this namespace of this cluster, whatever its
// environment is.
func (c *Cluster) Kubectl() []string {
	var command []string
	if len(c.files) > 0 {
		var all []string
		for _, file := range c.files {
			if absolute, err := filepath.Abs(file); err == nil {
				file = absolute
			}
			all = append(all, file)
		}
		command = []string{"env", "KUBECONFIG=" + strings.Join(all, string(filepath.ListSeparator))}
	}
	command = append(command, "kubectl", "--namespace", c.Namespace)
	if c.Context != "" {
		command = append(command, "--context", c.Context)
	}
	return command
}

func open(e Endpoint, config *rest.Config, log *slog.Logger) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no limit: the API server limits clients itself (API priority and fairness)
	config.UserAgent = "sandshell"
	// The warnings that the API server adds to answers are not for the program's standard error.
	config.WarningHandler = rest.NoWarnings{}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	clock := &serverClock{next: transport}
	client := &http.Client{Transport: clock, Timeout: config.Timeout}
	core, err1 := restClient(config, client, corev1.SchemeGroupVersion, "/api")
	networking, err2 := restClient(config, client, networkingv1.SchemeGroupVersion, "/apis")
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	codec := runtime.NewParameterCodec(kinds())
	return &Cluster{
		Endpoint: e, log: log, config: config, core: core, clock: clock,
		Pods: listed(gentype.NewClientWithList("pods", core, codec, e.Namespace,
			func() *corev1.Pod {
				return &corev1.Pod{}
			}, func() *corev1.PodList { return &corev1.PodList{} })),
		Events: listed(gentype.NewClientWithList("events", core, codec, e.Namespace,
			func() *corev1.Event {
				return &corev1.Event{}
			}, func() *corev1.EventList { return &corev1.EventList{} })),
		ConfigMaps: &Resource[*corev1.ConfigMap]{gentype.NewClient("configmaps", core, codec,
			e.Namespace, func() *corev1.ConfigMap { return &corev1.ConfigMap{} })},
		Policies: &Resource[*networkingv1.NetworkPolicy]{gentype.NewClient("networkpolicies",
			networking, codec, e.Namespace,
			func() *networkingv1.NetworkPolicy { return &networkingv1.NetworkPolicy{} })},
	}, nil
}

func restClient(config *rest.Config, client *http.Client, v schema.GroupVersion,
	path string) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v, path
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+
		","+runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(kinds()).WithoutConversion()
	return rest.RESTClientForConfigAndClient(c, client)
}

// Close closes idle connections. Other Clusters of the same API server share them, and make new
// ones.
func (c *Cluster) Close() { utilnet.CloseIdleConnectionsFor(c.clock.next) }

// Host returns the API server's address.
func (c *Cluster) Host() string { return c.config.Host }
