package sshbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// keysForTLS makes the keys and certificates of an engine on this machine and of a client that may
// use it. It writes them to a directory, with the names that Docker gives them, and returns the
// authority that has signed them.
func keysForTLS(t *testing.T) (dir string, authority *x509.Certificate) {
	t.Helper()
	dir = t.TempDir()
	var signer *ecdsa.PrivateKey
	sign := func(number int64, use x509.ExtKeyUsage, cert, private string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		noError(t, err)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "sandshell test"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{use},
			BasicConstraintsValid: true, IsCA: authority == nil,
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		if authority == nil {
			authority, signer = template, key
		}
		signed, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(),
			signer)
		noError(t, err)
		der, err := x509.MarshalECPrivateKey(key)
		noError(t, err)
		for name, block := range map[string]pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed},
			private: {Type: "EC PRIVATE KEY", Bytes: der}} {
			noError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&block), 0o600))
		}
		if authority == template {
			authority, err = x509.ParseCertificate(signed)
			noError(t, err)
		}
	}
	sign(1, x509.ExtKeyUsageAny, "ca.pem", "ca-key.pem")
	sign(2, x509.ExtKeyUsageServerAuth, "server-cert.pem", "server-key.pem")
	sign(3, x509.ExtKeyUsageClientAuth, "cert.pem", "key.pem")
	return dir, authority
}

// serveTLS has the proxy serve TLS too. It returns the address, and the directory of the keys.
func (proxy *engineProxy) serveTLS(t *testing.T) (address, keys string) {
	t.Helper()
	keys, authority := keysForTLS(t)
	server, err := tls.LoadX509KeyPair(filepath.Join(keys, "server-cert.pem"),
		filepath.Join(keys, "server-key.pem"))
	noError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: pool,
	})
	noError(t, err)
	proxy.Serve(l)
	t.Cleanup(func() { l.Close() }) // before the proxy is closed
	return "tcp://" + l.Addr().String(), keys
}
