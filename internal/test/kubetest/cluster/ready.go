//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// An api asks the API server about the state of the cluster.
type api struct{ client *http.Client }

func newAPI() (*api, error) {
	ca, err := os.ReadFile(filepath.Join(here, "pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(filepath.Join(here, "pki", "kubelet-client.crt"),
		filepath.Join(here, "pki", "kubelet-client.key"))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		Certificates: []tls.Certificate{pair}}}
	return &api{&http.Client{Transport: transport, Timeout: 10 * time.Second}}, nil
}

// wait calls is until it reports true. The caller bounds the wait.
func (a *api) wait(is func() bool) {
	for !is() {
		time.Sleep(50 * time.Millisecond)
	}
}

// get gets a path, and reports whether there was an answer. Unless v is nil, it decodes the answer
// into v.
func (a *api) get(path string, v any) bool {
	answer, err := a.client.Get("https://" + planeAddress + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK &&
		(v == nil || json.NewDecoder(answer.Body).Decode(v) == nil)
}

// healthy reports whether the API server has made its first objects, such as the roles of the other
// parts.
func (a *api) healthy() bool { return a.get("/readyz", nil) }

// readyNodes returns how many nodes are ready for pods.
func (a *api) readyNodes() int {
	var list struct {
		Items []struct {
			Spec   struct{ Taints []struct{ Key string } }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	n := 0
	if a.get("/api/v1/nodes", &list) {
		for _, node := range list.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" && len(node.Spec.Taints) == 0 {
					n++
				}
			}
		}
	}
	return n
}
