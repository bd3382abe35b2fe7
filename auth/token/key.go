package token

import (
	"crypto"
	"crypto/elliptic"
	"fmt"
	"log/slog"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// Key signs or verifies tokens with one algorithm. Its values do not change, so it may be used concurrently.
type Key struct {
	id    string // empty = none
	alg   *algorithm
	ops   []string // nil = sign and verify
	scope *Claims  // ceiling; nil = none

	secret  []byte           // of symmetric keys
	private crypto.Signer    // nil = verify only
	public  crypto.PublicKey // nil for symmetric keys
}

// ID is the key id; empty if the key has none.
func (k *Key) ID() string { return k.id }

// Algorithm is the one that the key is bound to, such as "ES256".
func (k *Key) Algorithm() string { return k.alg.name }

// Symmetric reports whether who verifies can also sign.
func (k *Key) Symmetric() bool { return k.secret != nil }

// Private reports whether the key holds material that others must not see.
func (k *Key) Private() bool { return k.secret != nil || k.private != nil }

// CanSign and CanVerify report whether the key has the material for it and may be used so.
func (k *Key) CanSign() bool { return k.Private() && k.may(opSign) }

// CanVerify is the counterpart of CanSign.
func (k *Key) CanVerify() bool { return k.may(opVerify) }

func (k *Key) may(op string) bool { return k.ops == nil || slices.Contains(k.ops, op) }

// Public returns the half that may be given away. Symmetric keys fail with ErrNotPublic.
func (k *Key) Public() (*Key, error) {
	if k.Symmetric() {
		return nil, ErrNotPublic
	}
	return &Key{id: k.id, alg: k.alg, ops: []string{opVerify}, scope: k.scope, public: k.public}, nil
}

// Limited returns the key with a ceiling: what a token may grant at most, times left aside.
func (k *Key) Limited(scope Claims) *Key {
	limited := *k
	limited.scope = &scope
	return &limited
}

// String, GoString and LogValue name the key without its material.
func (k *Key) String() string { return fmt.Sprintf("%s key %q", k.alg.name, k.id) }

// GoString is String.
func (k *Key) GoString() string { return k.String() }

// LogValue is String.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// algorithm is one way to sign, with the keys that go with it.
type algorithm struct {
	name   string
	kty    string
	method jwt.SigningMethod

	load     func(*jwk, *Key) error // takes over the material of a JWK
	store    func(*Key, *jwk)
	generate func(*Key) error
}

// algorithms are those that others know too. "none" is not among them, and never will be.
var algorithms = func() map[string]*algorithm {
	out := make(map[string]*algorithm)
	for _, a := range []*algorithm{
		hmacKey(jwt.SigningMethodHS256, 32), hmacKey(jwt.SigningMethodHS384, 48), hmacKey(jwt.SigningMethodHS512, 64),
		ecKey(jwt.SigningMethodES256, elliptic.P256()), ecKey(jwt.SigningMethodES384, elliptic.P384()),
		rsaKey(jwt.SigningMethodRS256), rsaKey(jwt.SigningMethodRS384), rsaKey(jwt.SigningMethodRS512),
		rsaKey(jwt.SigningMethodPS256), rsaKey(jwt.SigningMethodPS384), rsaKey(jwt.SigningMethodPS512),
		edKey(),
	} {
		out[a.name] = a
	}
	return out
}()

// Algorithms lists the names of all algorithms, sorted.
func Algorithms() []string {
	out := make([]string, 0, len(algorithms))
	for name := range algorithms {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// verifier and signer are what the algorithms of the library take.
func (k *Key) verifier() any {
	if k.secret != nil {
		return k.secret
	}
	return k.public
}

func (k *Key) signer() any {
	if k.secret != nil {
		return k.secret
	}
	return k.private
}
