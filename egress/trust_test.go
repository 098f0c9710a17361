package egress

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// authorities returns some.
func authorities(t testing.TB, n int) (list []*authority) {
	t.Helper()
	for range n {
		a, err := newAuthority(nil)
		require.NoError(t, err)
		list = append(list, a)
	}
	return list
}

// TestBundle shows that of a file of certificates only the authority is taken out.
func TestBundle(t *testing.T) {
	t.Parallel()
	as := authorities(t, 2)
	a, other := as[0], as[1].pem()
	odd := []byte("-----BEGIN CERTIFICATE-----\nnot at all\n-----END CERTIFICATE-----\n")
	for _, parts := range [][][]byte{
		{other, []byte("# a comment\n"), a.pem(), odd, other},
		{a.pem(), a.pem()},
		{nil, other, bytes.TrimSuffix(a.pem(), []byte("\n"))},
		{a.pem(), other[:100]},
		{[]byte("neither")},
	} {
		rest := slices.DeleteFunc(slices.Clone(parts), func(p []byte) bool {
			return len(p) > 0 && bytes.HasPrefix(a.pem(), p)
		})
		require.Equal(t, string(slices.Concat(rest...)),
			string(a.outOf(slices.Concat(parts...))))
	}
}

// TestJavaStore shows what becomes of a trust store of Java's: all its certificates stay.
func TestJavaStore(t *testing.T) {
	t.Parallel()
	as := authorities(t, 3)
	a, b, c := as[0], as[1].cert.Raw, as[2].cert.Raw
	jks := javaKeyStore([][]byte{b, c})
	require.Equal(t, [][]byte{b, c}, storeCertificates(jks))
	changed := a.intoStore(jks)
	require.Equal(t, [][]byte{b, c, a.cert.Raw}, storeCertificates(changed))
	require.Equal(t, [][]byte{b, c}, storeCertificates(a.outOfStore(changed)))
	require.Equal(t, jks, a.outOfStore(jks))
	// What is like PKCS #12: certificates in the midst of other structures.
	like := slices.Concat([]byte{0x30, 0x82, 0xff, 0xff, 2, 1, 3, 0x30, 0x82}, b, []byte{0x30, 0x82,
		1, 0, 4, 0x82}, c, []byte{0x30, 0x82})
	require.Equal(t, [][]byte{b, c}, storeCertificates(like))
	// One with another password, a cut one, and what is no store.
	jks[len(jks)-1]++
	for _, store := range [][]byte{jks, jks[:50], jks[:10], nil, []byte("what?")} {
		require.Nil(t, a.intoStore(store))
		require.Equal(t, store, a.outOfStore(store))
	}
	one, two := newJavaProxy("127.0.0.1", "3128"), newJavaProxy("127.0.0.1", "3129")
	for _, text := range []string{"", "a=b\n", "a=b"} {
		with := one.into(one.into([]byte(text)))
		require.Equal(t, 1, strings.Count(string(with), "https.proxyPort=3128\n"))
		both := two.into(with)
		require.Equal(t, string(with), string(two.outOf(both)))
		rest := string(two.outOf(one.outOf(both)))
		require.Equal(t, strings.TrimSuffix(text, "\n"), strings.TrimSuffix(rest, "\n"))
	}
	cut := []byte(one.begin + "a")
	require.Equal(t, cut, one.outOf(cut))
}

// TestNames shows that other programs read what is made for them as it is meant: the name of the
// authority's file for OpenSSL, and stores as Java writes them.
func TestNames(t *testing.T) {
	t.Parallel()
	as := authorities(t, 2)
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(file, as[0].pem(), 0o600))
	if _, err := exec.LookPath("openssl"); err == nil {
		out, err := exec.Command("openssl", "x509", "-noout", "-subject_hash", "-in", file).Output()
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(out)), as[0].hash())
	}
	keytool, err := exec.LookPath("keytool")
	if err != nil || !testenv.All() {
		return
	}
	for kind, more := range map[string][]string{"jks": nil, "pkcs12": {
		"-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE", "-J-Dkeystore.pkcs12.macAlgorithm=NONE",
	}} {
		store := filepath.Join(dir, kind)
		out, err := exec.Command(keytool, append([]string{"-importcert", "-noprompt", "-alias", "x",
			"-file", file, "-keystore", store, "-storepass", jksPassword, "-storetype", kind},
			more...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		text, err := os.ReadFile(store)
		require.NoError(t, err)
		require.Equal(t, [][]byte{as[0].cert.Raw}, storeCertificates(text), kind)
		require.NoError(t, os.WriteFile(store, as[1].intoStore(text), 0o600))
		out, err = exec.Command(keytool, "-list", "-rfc", "-keystore", store, "-storepass",
			jksPassword).Output()
		require.NoError(t, err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(out)
		for _, a := range as {
			_, err := a.cert.Verify(x509.VerifyOptions{Roots: pool})
			require.NoError(t, err)
		}
		block, _ := pem.Decode(out)
		require.NotNil(t, block)
	}
}

// TestSameKey checks that two authorities of one key are the same, and that of another key none is.
func TestSameKey(t *testing.T) {
	t.Parallel()
	key := attachKey("0123456789abcdef0123456789abcdef")
	a, err := newAuthority(key)
	require.NoError(t, err)
	b, err := newAuthority(append(attachKey{}, key...))
	require.NoError(t, err)
	require.Equal(t, a.pem(), b.pem())
	require.Equal(t, "uSQCPN8eCXJ9aV1XCvRxitkthR7jMQDJUNXSq3D/0Uw=", a.spki(),
		"programs of boxes trust the authority that an earlier version has made")
	other, err := newAuthority(append(attachKey{1}, key...))
	require.NoError(t, err)
	require.NotEqual(t, a.spki(), other.spki())
	leaf, err := b.certificateOf("a.example.com")
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "a.example.com"})
	require.NoError(t, err)
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: func() *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(other.cert)
		return p
	}(), DNSName: "a.example.com"})
	require.Error(t, err)
	require.Equal(t, key.text("x"), key.text("x"))
	require.NotEqual(t, key.text("x"), key.text("y"))
	require.NotEqual(t, attachKey(nil).text("x"), attachKey(nil).text("x"))
}
