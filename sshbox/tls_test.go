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

// serveTLS has the cable's engine behind TLS too, for clients with the keys that it writes to dir, by the names that the docker command has for them. It
// returns the address.
func (c *cable) serveTLS(t *testing.T, dir string) (address string) {
	t.Helper()
	write := func(name, kind string, bytes []byte) {
		noError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
	}
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	sign := func(number int64, use x509.ExtKeyUsage) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		noError(t, err)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "sandshell test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{use},
			BasicConstraintsValid: true, IsCA: authority == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		if authority == nil {
			authority, signer = template, key
		}
		cert, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
		noError(t, err)
		return cert, key
	}
	ca, _ := sign(1, x509.ExtKeyUsageAny)
	server, serverKey := sign(2, x509.ExtKeyUsageServerAuth)
	user, userKey := sign(3, x509.ExtKeyUsageClientAuth)
	userDER, err := x509.MarshalECPrivateKey(userKey)
	noError(t, err)
	write("ca.pem", "CERTIFICATE", ca)
	write("cert.pem", "CERTIFICATE", user)
	write("key.pem", "EC PRIVATE KEY", userDER)
	parsed, err := x509.ParseCertificate(ca)
	noError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{server}, PrivateKey: serverKey}}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	noError(t, err)
	c.Serve(l)
	t.Cleanup(func() { l.Close() }) // before the cable's own end
	return "tcp://" + l.Addr().String()
}
