package egress

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	backdated  = 48 * time.Hour // the clock of a virtual machine may be late
	caLife     = 10 * 365 * 24 * time.Hour
	leafLife   = 365 * 24 * time.Hour // clients refuse what is valid for longer than 398 days
	mostLeaves = 256

	authorityName = "sandshell egress"
)

// The life of an authority that is made again and again.
var (
	keyedBegin = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	keyedEnd   = time.Date(2049, 12, 31, 0, 0, 0, 0, time.UTC)
)

// An authority is the certificate authority of one box. Its keys are in this program's memory only,
// and nobody but that box trusts it. Those of an attachKey are made anew by each Exit.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // of all leaves

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by host; at most mostLeaves
}

// newAuthority makes an authority. If key is not nil, it is always the same one, byte by byte.
func newAuthority(key attachKey) (*authority, error) {
	a := &authority{key: key.private("authority"), leaf: key.private("leaf"),
		leaves: map[string]*tls.Certificate{}}
	template, err := certificate(pkix.Name{CommonName: authorityName}, caLife, a.key)
	if err != nil {
		return nil, err
	}
	signature := rand.Reader
	if key != nil {
		template.SerialNumber = new(big.Int).SetBytes(key.bytes("serial", 15))
		template.NotBefore, template.NotAfter = keyedBegin, keyedEnd
		signature = nil // as RFC 6979 has it
	}
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.IsCA, template.MaxPathLenZero = true, true
	template.AuthorityKeyId = template.SubjectKeyId
	der, err := x509.CreateCertificate(signature, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// certificate returns a template with what all certificates have.
func certificate(subject pkix.Name, life time.Duration,
	key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(public)
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: subject,
		NotBefore: time.Now().Add(-backdated), NotAfter: time.Now().Add(life),
		BasicConstraintsValid: true, SubjectKeyId: id[:20],
	}, nil
}

// pem returns the authority's certificate.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// spki returns the hash of the authority's public key in the form that Chromium has it.
func (a *authority) spki() string {
	sum := sha256.Sum256(a.cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// hash returns the name that the certificate's file has in a directory of OpenSSL, without the
// number: see X509_NAME_hash. It is a hash of the subject in small letters, in UTF-8.
func (a *authority) hash() string {
	text := strings.ToLower(authorityName)
	pair := append([]byte{0x06, 3, 0x55, 0x04, 0x03, 0x0c, byte(len(text))}, text...) // commonName
	const sequence, set = 0x30, 0x31
	for _, tag := range []byte{sequence, set} {
		pair = append([]byte{tag, byte(len(pair))}, pair...)
	}
	sum := sha1.Sum(pair)
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(sum[:4]))
}

// certificateOf returns a certificate of a normal host.
func (a *authority) certificateOf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil && time.Until(c.Leaf.NotAfter) > leafLife/2 {
		return c, nil
	}
	name := pkix.Name{CommonName: host}
	if len(host) > 64 { // the most that X.509 allows
		name = pkix.Name{}
	}
	template, err := certificate(name, leafLife, a.leaf)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if len(a.leaves) >= mostLeaves {
		clear(a.leaves)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf, Leaf: leaf}
	a.leaves[host] = c
	return c, nil
}
