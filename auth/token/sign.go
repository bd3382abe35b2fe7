package token

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/internal/strictjson"
)

// Errors of tokens. ErrToken is wrapped by each of the others, and by everything else that makes a token worthless.
var (
	ErrToken     = errors.New("bad token")
	ErrMalformed = fmt.Errorf("%w: malformed", ErrToken)
	ErrAlgorithm = fmt.Errorf("%w: its algorithm is not that of the key", ErrToken)
	ErrSignature = fmt.Errorf("%w: signature", ErrToken)
	ErrExpired   = fmt.Errorf("%w: expired", ErrToken)
	ErrEarly     = fmt.Errorf("%w: not valid yet", ErrToken)
	ErrScope     = fmt.Errorf("%w: it grants more than its key may", ErrToken)
	ErrNoKey     = fmt.Errorf("%w: no key for it", ErrToken)
)

// ErrUse says that a key must not, or cannot, be used for what it was asked for.
var ErrUse = errors.New("the key is not for this use")

// Leeway is how far the clocks of who signs and who verifies may be apart (auth 6.2).
const Leeway = 5 * time.Second

// maxToken bounds tokens, in bytes: larger ones are not looked at.
const maxToken = 16 << 10

// Sign writes a token. It fails with ErrUse, ErrNothingGranted or, where the claims exceed the ceiling of the key,
// ErrScope.
func (k *Key) Sign(c Claims) (string, error) {
	switch {
	case !k.CanSign():
		return "", fmt.Errorf("%w: signing", ErrUse)
	case c.Publish.Empty() && c.Subscribe.Empty():
		return "", ErrNothingGranted
	case k.scope != nil && !c.Within(*k.scope):
		return "", ErrScope
	}
	claims, err := c.MarshalJSON()
	if err != nil {
		return "", err
	}
	header := `{"typ":"JWT","alg":"` + k.alg.name + `"`
	if k.id != "" {
		header += `,"kid":"` + k.id + `"`
	}
	text := encode64([]byte(header+"}")) + "." + encode64(claims)
	signature, err := k.alg.method.Sign(text, k.signer())
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return text + "." + encode64(signature), nil
}

// Token is a token taken apart, with nothing of it verified.
type Token struct {
	alg, kid  string
	hasKid    bool
	claims    []byte
	signed    string
	signature []byte
}

// strict64 reads the parts of a token: no padding, no line breaks, no stray bits.
var strict64 = base64.RawURLEncoding.Strict()

// Split takes a token apart. It fails with ErrMalformed.
func Split(text string) (*Token, error) {
	if len(text) > maxToken {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrMalformed, maxToken)
	}
	if strings.Count(text, ".") != 2 || strings.ContainsAny(text, "\r\n") { // line breaks, package base64 would skip
		return nil, ErrMalformed
	}
	end := strings.LastIndexByte(text, '.')
	t := &Token{signed: text[:end]}
	header, claims, _ := strings.Cut(t.signed, ".")
	head, err := strict64.DecodeString(header)
	if err != nil {
		return nil, ErrMalformed
	}
	if t.claims, err = strict64.DecodeString(claims); err != nil {
		return nil, ErrMalformed
	}
	if t.signature, err = strict64.DecodeString(text[end+1:]); err != nil {
		return nil, ErrMalformed
	}
	return t, t.readHeader(head)
}

// readHeader takes from the header what counts. Keys and addresses of keys in it are nobody's business.
func (t *Token) readHeader(head []byte) error {
	members, err := strictjson.Object(head)
	if err != nil {
		return ErrMalformed
	}
	var ok bool
	if t.alg, ok = strictjson.String(members["alg"]); !ok {
		return fmt.Errorf("%w: alg", ErrMalformed)
	}
	if raw, present := members["kid"]; present {
		t.hasKid = true
		if t.kid, ok = strictjson.String(raw); !ok || !ValidID(t.kid) {
			return fmt.Errorf("%w: kid", ErrMalformed)
		}
	}
	if _, present := members["crit"]; present {
		return fmt.Errorf("%w: crit, none of which is supported", ErrMalformed)
	}
	return nil
}

// Verify reads a token with the keys that it may be signed with. The error wraps ErrToken, or is one of the keys' own,
// which then could not tell (see Keys).
func Verify(ctx context.Context, text string, keys Keys, now time.Time) (Claims, error) {
	t, err := Split(text)
	if err != nil {
		return Claims{}, err
	}
	k, err := keys.Key(ctx, t.kid)
	if err != nil {
		return Claims{}, err
	}
	return k.verify(t, now)
}

// Verify reads a token that must be signed with this key. The error wraps ErrToken, or ErrUse.
func (k *Key) Verify(text string, now time.Time) (Claims, error) {
	t, err := Split(text)
	if err != nil {
		return Claims{}, err
	}
	return k.verify(t, now)
}

func (k *Key) verify(t *Token, now time.Time) (Claims, error) {
	switch {
	case !k.CanVerify():
		return Claims{}, fmt.Errorf("%w: verifying", ErrUse)
	case t.alg != k.alg.name:
		return Claims{}, ErrAlgorithm
	case t.hasKid && k.id != "" && t.kid != k.id:
		return Claims{}, ErrNoKey
	case k.alg.method.Verify(t.signed, t.signature, k.verifier()) != nil:
		return Claims{}, ErrSignature
	}
	c, err := parseClaims(t.claims)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	switch {
	case !c.Expires.IsZero() && !c.Expires.Add(Leeway).After(now):
		return Claims{}, ErrExpired
	case c.NotBefore.After(now.Add(Leeway)):
		return Claims{}, ErrEarly
	case k.scope != nil && !c.Within(*k.scope):
		return Claims{}, ErrScope
	}
	return c, nil
}
