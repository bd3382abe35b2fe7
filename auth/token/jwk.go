package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/moqmesh/moqmesh/internal/strictjson"
)

// Errors of keys.
var (
	// ErrKey is wrapped by every error of a key that cannot be used. None quotes key material.
	ErrKey = errors.New("unusable key")
	// ErrNotPublic says that a key has no public half to give away.
	ErrNotPublic = errors.New("a symmetric key has no public half")
)

func badKey(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrKey}, args...)...)
}

// maxKeyFile bounds key files and sets, in bytes.
const maxKeyFile = 64 << 10

// The operations of a key that matter here.
const (
	opSign   = "sign"
	opVerify = "verify"
)

// validID is what a key id may be: it can become the name of a file.
var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// ValidID reports whether text may be a key id: 1 to 128 of A-Z, a-z, 0-9, "_" and "-".
func ValidID(text string) bool { return validID.MatchString(text) }

// jwk is a key as JSON, in the order in which others write it.
type jwk struct {
	Alg    string   `json:"alg"`
	KeyOps []string `json:"key_ops,omitempty"`
	Kty    string   `json:"kty"`
	K      string   `json:"k,omitempty"`
	Crv    string   `json:"crv,omitempty"`
	X      string   `json:"x,omitempty"`
	Y      string   `json:"y,omitempty"`
	N      string   `json:"n,omitempty"`
	E      string   `json:"e,omitempty"`
	D      string   `json:"d,omitempty"`
	P      string   `json:"p,omitempty"`
	Q      string   `json:"q,omitempty"`
	Dp     string   `json:"dp,omitempty"`
	Dq     string   `json:"dq,omitempty"`
	Qi     string   `json:"qi,omitempty"`
	Kid    string   `json:"kid,omitempty"`
	Scope  *Claims  `json:"scope,omitempty"`
}

// Parse reads a key file: a JWK as JSON, or that JSON as base64url. White space around it does not count.
func Parse(data []byte) (*Key, error) {
	if len(data) > maxKeyFile {
		return nil, badKey("larger than %d bytes", maxKeyFile)
	}
	text, err := plainJSON(data)
	if err != nil {
		return nil, err
	}
	return parseJWK(text)
}

// plainJSON undoes the base64 form.
func plainJSON(data []byte) ([]byte, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, badKey("the file is empty")
	}
	if data[0] == '{' {
		return data, nil
	}
	text, err := decode64(string(data))
	if err != nil {
		return nil, badKey("neither JSON nor base64url")
	}
	return text, nil
}

// decode64 reads base64url; padding is tolerated.
func decode64(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

func encode64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// parseJWK reads a JWK. Members that are not ours are ignored (RFC 7517 4).
func parseJWK(text []byte) (*Key, error) {
	members, err := strictjson.Object(text)
	if err != nil {
		return nil, badKey("%w", err)
	}
	var j jwk
	for name, field := range map[string]*string{
		"alg": &j.Alg, "kty": &j.Kty, "k": &j.K, "crv": &j.Crv, "x": &j.X, "y": &j.Y, "n": &j.N, "e": &j.E,
		"d": &j.D, "p": &j.P, "q": &j.Q, "dp": &j.Dp, "dq": &j.Dq, "qi": &j.Qi, "kid": &j.Kid,
	} {
		raw, present := members[name]
		if !present {
			continue
		}
		value, ok := strictjson.String(raw)
		if !ok {
			return nil, badKey("%s is not text", name)
		}
		*field = value
	}
	if raw, present := members["kid"]; present && !ValidID(j.Kid) {
		return nil, badKey("kid %.140s is not 1 to 128 letters, digits, - and _", raw)
	}
	if raw, present := members["key_ops"]; present {
		var ok bool
		if j.KeyOps, ok = strictjson.Strings(raw); !ok {
			return nil, badKey("key_ops is not a list of text")
		}
	}
	if _, present := members["oth"]; present {
		return nil, badKey("RSA keys of more than two primes are not supported")
	}
	k, err := j.key()
	if err != nil {
		return nil, err
	}
	if raw, present := members["scope"]; present {
		if k.scope, err = parseScope(raw); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// parseScope reads the ceiling of a key.
func parseScope(raw json.RawMessage) (*Claims, error) {
	c, err := parseClaims(raw)
	switch {
	case err != nil:
		return nil, badKey("scope: %w", err)
	case !c.Expires.IsZero() || !c.NotBefore.IsZero() || !c.Issued.IsZero():
		return nil, badKey("scope: times belong into tokens")
	}
	return &c, nil
}

// key checks what the members say together, and builds the key.
func (j *jwk) key() (*Key, error) {
	alg, known := algorithms[j.Alg]
	switch {
	case j.Alg == "":
		return nil, badKey("alg is missing")
	case !known:
		return nil, badKey("alg %.32q is not supported", j.Alg)
	case j.Kty == "":
		return nil, badKey("kty is missing")
	case j.Kty != alg.kty:
		return nil, badKey("kty %.32q does not go with alg %s", j.Kty, j.Alg)
	}
	k := &Key{id: j.Kid, alg: alg, ops: j.KeyOps}
	if err := checkOps(j.KeyOps); err != nil {
		return nil, err
	}
	if err := alg.load(j, k); err != nil {
		return nil, err
	}
	return k, nil
}

func checkOps(ops []string) error {
	if ops != nil && len(ops) == 0 {
		return badKey("key_ops is empty")
	}
	for i, op := range ops {
		if slices.Contains(ops[:i], op) {
			return badKey("key_ops names %.16q twice", op)
		}
		switch op {
		case opSign, opVerify, "encrypt", "decrypt":
		default:
			return badKey("key_ops has %.16q, which is not supported", op)
		}
	}
	return nil
}

// MarshalJSON writes the key with all its material.
func (k *Key) MarshalJSON() ([]byte, error) {
	j := jwk{Alg: k.alg.name, KeyOps: k.ops, Kty: k.alg.kty, Kid: k.id, Scope: k.scope}
	k.alg.store(k, &j)
	return json.Marshal(j)
}

// Encode writes the key in the form of key files that takes no quoting: base64url of the JSON.
func (k *Key) Encode() string {
	text, err := k.MarshalJSON()
	if err != nil {
		panic(err) // texts and lists of them only
	}
	return encode64(text)
}

// WriteFile writes the key in its base64url form, readable by the owner alone if it holds private material. It does not
// replace a file.
func (k *Key) WriteFile(name string) error {
	mode := os.FileMode(0o644)
	if k.Private() {
		mode = 0o600
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(k.Encode() + "\n")
	return errors.Join(err, f.Close())
}
