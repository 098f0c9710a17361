package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	authorizeWord = "sandshell authorize "
	adoptWord     = "sandshell adopt "
	joinWord      = "sandshell join "
	renewWord     = "sandshell renew "
	answerWord    = "sandshell answer "
	hostKeyWord   = "host-key "
	refusedWord   = "refused "
)

// ClaimMax is the greatest length of a claim in bytes. Linux writes that much into a pipe at once
// (PIPE_BUF), so that two claims do not mix.
const ClaimMax = 4096

// A Claim is a line by which a client becomes an owner of the box.
type Claim struct {
	Adopts bool   // boxd is to refuse if the box has another owner
	Joins  bool   // the other owners stay
	Renews string // the box's new id; "": it keeps the one that it has
	Nonce  string // made for this claim; only its sender and boxd know it
	Key    string // the owner's public key, as in authorized_keys
}

// NewClaim returns a claim for that key.
func NewClaim(key ssh.PublicKey, adopts bool) Claim {
	return Claim{Adopts: adopts, Nonce: rand.Text(),
		Key: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}
}

// NewJoin returns a claim for that key, by which the other owners stay.
func NewJoin(key ssh.PublicKey) Claim {
	c := NewClaim(key, false)
	c.Joins = true
	return c
}

// NewRenewal returns a claim for that key, by which a copy of a box becomes a box of its own, with
// that id.
func NewRenewal(key ssh.PublicKey, id string) Claim {
	c := NewClaim(key, false)
	c.Renews = id
	return c
}

// String returns the claim as a line, with its newline.
func (c Claim) String() string {
	return c.word() + c.Nonce + " " + c.Key + "\n"
}

func (c Claim) word() string {
	switch {
	case c.Adopts:
		return adoptWord
	case c.Joins:
		return joinWord
	case c.Renews != "":
		return renewWord + c.Renews + " "
	}
	return authorizeWord
}

// ParseClaim parses a line that String has made.
func ParseClaim(line string) (Claim, error) {
	c := Claim{}
	rest, ok := strings.CutPrefix(line, authorizeWord)
	if !ok {
		rest, c.Adopts = strings.CutPrefix(line, adoptWord)
	}
	if !ok && !c.Adopts {
		rest, c.Joins = strings.CutPrefix(line, joinWord)
	}
	if !ok && !c.Adopts && !c.Joins {
		rest, ok = strings.CutPrefix(line, renewWord)
		c.Renews, rest, _ = strings.Cut(rest, " ")
		ok = ok && c.Renews != ""
	}
	c.Nonce, c.Key, _ = strings.Cut(strings.TrimSpace(rest), " ")
	if !ok && !c.Adopts && !c.Joins || c.Nonce == "" || c.Key == "" {
		return c, fmt.Errorf("it is no claim: %.40q", line)
	}
	return c, nil
}

// Accept returns the line by which boxd, which has that host key, accepts the claim.
func (c Claim) Accept(hostKey ssh.PublicKey) string {
	return c.answer(hostKeyWord + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(hostKey))))
}

// Refuse returns the line by which boxd refuses the claim.
func (c Claim) Refuse(why error) string {
	return c.answer(refusedWord + strings.ReplaceAll(why.Error(), "\n", " "))
}

func (c Claim) answer(text string) string {
	return answerWord + c.code("claim") + " " + c.code(text) + " " + text + "\n"
}

// code returns the HMAC of a text and the claim under the nonce.
func (c Claim) code(text string) string {
	mac := hmac.New(sha256.New, []byte(c.Nonce))
	kind := strconv.FormatBool(c.Adopts)
	if c.Joins {
		kind = "joins"
	}
	if c.Renews != "" {
		kind = "renews " + c.Renews
	}
	fmt.Fprintf(mac, "%s\x00%s\x00%s", kind, c.Key, text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ParseAnswer parses a line of boxd's output. answers is false if the line is not an answer to this
// claim, or was not made by boxd. If boxd refuses the claim, err says why.
func (c Claim) ParseAnswer(line string) (hostKey ssh.PublicKey, answers bool, err error) {
	rest, _ := strings.CutPrefix(strings.TrimSuffix(line, "\n"), answerWord+c.code("claim")+" ")
	code, text, _ := strings.Cut(rest, " ")
	if !hmac.Equal([]byte(code), []byte(c.code(text))) {
		return nil, false, nil
	}
	if why, refused := strings.CutPrefix(text, refusedWord); refused {
		return nil, true, fmt.Errorf("%.200q", why)
	}
	key, ok := strings.CutPrefix(text, hostKeyWord)
	if !ok {
		return nil, true, fmt.Errorf("unexpected answer of boxd: %.100q", text)
	}
	hostKey, _, _, _, err = ssh.ParseAuthorizedKey([]byte(key))
	return hostKey, true, err
}
