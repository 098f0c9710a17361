//go:build linux

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An authority signs the certificates of the parts and the users of one cluster.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

const validity = 30 * 24 * time.Hour // a cluster lives for minutes, at most for days

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, key: key}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "sandshell-kube"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := a.sign(template, template, key.Public())
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, a.write("ca.crt", a.pem)
}

func (a *authority) sign(template, parent *x509.Certificate,
	public crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
}

// issue makes a key pair and a certificate for a name in some groups. The certificate is for a
// server at the addresses, or for a client if there are none.
func (a *authority) issue(name string, groups, addresses []string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, address := range addresses {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(address); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, address)
		}
	}
	der, err := a.sign(template, a.cert, private.Public())
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), err
}

// pair writes a certificate and its key to FILE.crt and FILE.key.
func (a *authority) pair(file, name string, groups []string, addresses ...string) error {
	cert, key, err := a.issue(name, groups, addresses)
	if err == nil {
		err = a.write(file+".crt", cert)
	}
	if err == nil {
		err = a.write(file+".key", key)
	}
	return err
}

// kubeconfig writes a kubeconfig for a client of the server to FILE.kubeconfig.
func (a *authority) kubeconfig(file, server, name string, groups ...string) error {
	cert, key, err := a.issue(name, groups, nil)
	if err != nil {
		return err
	}
	b64 := base64.StdEncoding.EncodeToString
	return a.write(file+".kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: sandshell, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: user, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: sandshell, context: {cluster: sandshell, user: user}}]
current-context: sandshell
`, server, b64(a.pem), b64(cert), b64(key)))
}

func (a *authority) write(file string, b []byte) error {
	return os.WriteFile(filepath.Join(a.dir, file), b, 0o600)
}
