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

// An api asks the API server how far it is.
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

// wait asks until it is so. The caller has the limit.
func (a *api) wait(is func() bool) {
	for !is() {
		time.Sleep(50 * time.Millisecond)
	}
}

// get reports whether there was an answer, and decodes it into v unless that is nil.
func (a *api) get(path string, v any) bool {
	answer, err := a.client.Get("https://" + planeAddress + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK &&
		(v == nil || json.NewDecoder(answer.Body).Decode(v) == nil)
}

// healthy reports whether the API server has made what it begins with, the roles of the others
// among it.
func (a *api) healthy() bool { return a.get("/readyz", nil) }

// readyNodes counts the nodes that take pods.
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
