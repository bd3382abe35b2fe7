package lan

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"log/slog"
	"strconv"
	"strings"
)

// ErrSecret says that a text is no secret.
var ErrSecret = errors.New("not 64 hex digits")

// Secret is the key that the relays of a group share. It does not print.
type Secret struct{ key [32]byte }

// ParseSecret reads 64 hex digits of either case; white space around them does not count.
func ParseSecret(text string) (*Secret, error) {
	text = strings.TrimSpace(text)
	s := new(Secret)
	if len(text) != hex.EncodedLen(len(s.key)) {
		return nil, ErrSecret
	}
	if _, err := hex.Decode(s.key[:], []byte(text)); err != nil {
		return nil, ErrSecret // hex would quote a digit
	}
	return s, nil
}

// Equal reports whether two secrets are the same, or both absent.
func (s *Secret) Equal(o *Secret) bool {
	if s == nil || o == nil {
		return s == o
	}
	return subtle.ConstantTimeCompare(s.key[:], o.key[:]) == 1
}

func (s *Secret) String() string       { return "secret" }
func (s *Secret) GoString() string     { return "lan.Secret" }
func (s *Secret) LogValue() slog.Value { return slog.StringValue("secret") }

// What a proof is good for.
const (
	contextAdvert = "moq-mdns-advert" // the writer of the record holds the secret
	contextDial   = "moq-mdns-dial"   // the dialer does
)

// proof authenticates a record for one purpose (L3): HMAC-SHA256 over its parts, each followed by a zero byte.
func (s *Secret) proof(context string, r *record) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{context, r.app, r.instance, strconv.Itoa(int(r.port)), r.nonce, r.fingerprint, r.node} {
		writePart(mac, part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func writePart(mac hash.Hash, part string) {
	mac.Write([]byte(part)) // a hash never fails
	mac.Write([]byte{0})
}

// group is whom we mesh with: an application, and who holds the secret if there is one (nil = anybody).
type group struct {
	app    string
	secret *Secret
}

// seal puts the proof into a record of ours.
func (g group) seal(r *record) {
	if r.advert = ""; g.secret != nil {
		r.advert = g.secret.proof(contextAdvert, r)
	}
}

// accepts reports whether a record comes from our group (L5).
func (g group) accepts(r *record) bool {
	if g.secret == nil {
		return r.advert == ""
	}
	return equal(r.advert, g.secret.proof(contextAdvert, r))
}

// credential is what opens the listener of a record (L3, L4).
func (g group) credential(r *record) string {
	if g.secret == nil {
		return r.nonce
	}
	return g.secret.proof(contextDial, r)
}

// equal compares without telling by its time where the difference lies.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
