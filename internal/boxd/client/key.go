package client

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// A Key is the key of an owner: it is made for one box, and kept in memory only.
type Key struct {
	signer ssh.Signer
	claim  wire.Claim
}

// NewKey makes a Key.
func NewKey() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	return &Key{signer, wire.NewClaim(signer.PublicKey(), false)}, nil
}

// Claim returns the claim for "boxd start -claim". It holds no secret, as long as nobody else can
// write to the streams of that boxd start.
func (k *Key) Claim() string { return strings.TrimSpace(k.claim.String()) }
