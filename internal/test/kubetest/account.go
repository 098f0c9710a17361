package kubetest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Account makes a service account in a namespace, with only the rights of a role. It returns the
// path of a kubeconfig for that account. role is a Role in YAML with the name "sandshell". It must
// allow listing events.
func (c *Cluster) Account(t testing.TB, namespace, name, role string) (kubeconfig string) {
	t.Helper()
	binding := `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sandshell}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sandshell}
subjects: [{kind: ServiceAccount, name: sandshell}]
`
	for kind, object := range map[string]string{"roles": role, "rolebindings": binding} {
		object = strings.ReplaceAll(object, "name: sandshell", "name: "+name)
		require.NoError(t, c.Core(t).RESTClient().Post().AbsPath(
			"/apis/rbac.authorization.k8s.io/v1/namespaces", namespace, kind).
			SetHeader("Content-Type", "application/yaml").Body([]byte(object)).Do(
			t.Context()).Error())
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	require.NoError(t, err)
	user := config.Contexts[config.CurrentContext].AuthInfo
	config.AuthInfos[user].Impersonate = "system:serviceaccount:" + namespace + ":" + name
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))

	account, err := of(kubeconfig)
	require.NoError(t, err)
	events := account.Core(t).Events(namespace)
	require.Eventually(t, func() bool { // the API server sees new roles by a watch, so with a delay
		_, err := events.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return kubeconfig
}
