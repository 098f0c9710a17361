package egress

import (
	"bytes"
	"crypto/sha1"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

const jksPassword = "changeit" // Java's own; it keeps nothing secret

// Of the format JKS: see sun.security.provider.JavaKeyStore.
const (
	jksMagic   = 0xFEEDFEED
	jksVersion = 2
	jksTrusted = 2
)

// javaKeyStore returns certificates in the format JKS, which every Java reads, also where it
// expects another one.
func javaKeyStore(certificates [][]byte) []byte {
	var store []byte
	for _, n := range []uint32{jksMagic, jksVersion, uint32(len(certificates))} {
		store = binary.BigEndian.AppendUint32(store, n)
	}
	text := func(s string) {
		store = binary.BigEndian.AppendUint16(store, uint16(len(s)))
		store = append(store, s...)
	}
	for i, der := range certificates {
		store = binary.BigEndian.AppendUint32(store, jksTrusted)
		text(fmt.Sprintf("ca%d", i))
		store = binary.BigEndian.AppendUint64(store, uint64(time.Now().UnixMilli()))
		text("X.509")
		store = binary.BigEndian.AppendUint32(store, uint32(len(der)))
		store = append(store, der...)
	}
	return append(store, jksDigest(store)...)
}

func jksDigest(store []byte) []byte {
	sum := sha1.New()
	for _, r := range jksPassword {
		sum.Write([]byte{byte(r >> 8), byte(r)})
	}
	sum.Write([]byte("Mighty Aphrodite")) // of the format
	sum.Write(store)
	return sum.Sum(nil)
}

// pemCertificates returns the certificates of a PEM file.
func pemCertificates(text []byte) (list [][]byte) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list
		}
		if block.Type == "CERTIFICATE" {
			list = append(list, block.Bytes)
		}
	}
}

// storeCertificates returns the certificates of a Java trust store: of one in the format JKS with
// Java's own password, or of one in PKCS #12 that is not encrypted, as Java has had them since
// version 18. It finds them by what they are. nil stands for other files.
func storeCertificates(store []byte) (list [][]byte) {
	if len(store) > 4 && binary.BigEndian.Uint32(store) == jksMagic {
		end := len(store) - sha1.Size
		if end < 0 || !bytes.Equal(jksDigest(store[:end]), store[end:]) {
			return nil
		}
	}
	for len(store) > 0 {
		i := bytes.Index(store, []byte{0x30, 0x82}) // a sequence of 256 bytes or more
		if i < 0 {
			break
		}
		store = store[i:]
		var c struct {
			Raw            asn1.RawContent
			TBS, Algorithm asn1.RawValue
			Signature      asn1.BitString
		}
		rest, err := asn1.Unmarshal(store, &c)
		if err == nil && c.TBS.Tag == asn1.TagSequence && c.Algorithm.Tag == asn1.TagSequence {
			list = append(list, slices.Clone([]byte(c.Raw)))
			store = rest
		} else {
			store = store[2:]
		}
	}
	return list
}

// intoStore returns a Java trust store with the authority, in the format JKS.
func (a *authority) intoStore(store []byte) []byte {
	list := storeCertificates(store)
	if list == nil {
		return nil
	}
	return javaKeyStore(append(list, a.cert.Raw))
}

// outOfStore returns a Java trust store without the authority.
func (a *authority) outOfStore(store []byte) []byte {
	list := storeCertificates(store)
	n := len(list)
	list = slices.DeleteFunc(list, func(der []byte) bool { return bytes.Equal(der, a.cert.Raw) })
	if len(list) == n {
		return store
	}
	return javaKeyStore(list)
}
