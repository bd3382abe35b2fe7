package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"math/big"

	"github.com/golang-jwt/jwt/v5"
)

// Limits of key material.
const (
	minSecret = 32 // bytes (auth 6.1)
	minRSA    = 2048
	maxRSA    = 8192 // more takes too long to verify
	newRSA    = 2048
)

// Generate makes a key for an algorithm. An empty id stands for a random one of 16 hex digits.
func Generate(alg, id string) (*Key, error) {
	a := algorithms[alg]
	if a == nil {
		return nil, badKey("alg %.32q is not supported", alg)
	}
	if id == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		id = hex.EncodeToString(b[:])
	}
	if !ValidID(id) {
		return nil, badKey("id %.140q is not 1 to 128 letters, digits, - and _", id)
	}
	k := &Key{id: id, alg: a, ops: []string{opSign, opVerify}}
	if err := a.generate(k); err != nil {
		return nil, err
	}
	return k, nil
}

// hmacKey is HMAC with a secret of size bytes where one is generated.
func hmacKey(m *jwt.SigningMethodHMAC, size int) *algorithm {
	return &algorithm{
		name: m.Alg(), kty: "oct", method: m,
		load: func(j *jwk, k *Key) (err error) {
			if k.secret, err = decode64(j.K); err != nil {
				return badKey("k is not base64url")
			}
			if len(k.secret) < minSecret {
				return badKey("the secret has %d bytes, fewer than %d", len(k.secret), minSecret)
			}
			return nil
		},
		store: func(k *Key, j *jwk) { j.K = encode64(k.secret) },
		generate: func(k *Key) error {
			k.secret = make([]byte, size)
			_, _ = rand.Read(k.secret) // never fails
			return nil
		},
	}
}

// ecKey is ECDSA on one curve.
func ecKey(m *jwt.SigningMethodECDSA, curve elliptic.Curve) *algorithm {
	name, size := curve.Params().Name, (curve.Params().BitSize+7)/8
	return &algorithm{
		name: m.Alg(), kty: "EC", method: m,
		load: func(j *jwk, k *Key) error { return loadEC(j, k, curve, size) },
		store: func(k *Key, j *jwk) {
			point, err := k.public.(*ecdsa.PublicKey).Bytes()
			if err != nil {
				panic(err) // it is on the curve: it was loaded or generated
			}
			j.Crv, j.X, j.Y = name, encode64(point[1:1+size]), encode64(point[1+size:])
			if private, ok := k.private.(*ecdsa.PrivateKey); ok {
				d, err := private.Bytes()
				if err != nil {
					panic(err) // see above
				}
				j.D = encode64(d)
			}
		},
		generate: func(k *Key) error {
			private, err := ecdsa.GenerateKey(curve, rand.Reader)
			if err != nil {
				return err
			}
			k.private, k.public = private, &private.PublicKey
			return nil
		},
	}
}

func loadEC(j *jwk, k *Key, curve elliptic.Curve, size int) error {
	if j.Crv != curve.Params().Name {
		return badKey("crv %.16q does not go with alg %s", j.Crv, j.Alg)
	}
	point := []byte{4} // uncompressed
	for name, text := range map[string]string{"x": j.X, "y": j.Y, "d": j.D} {
		if b, err := decode64(text); err != nil || len(b) != size && (name != "d" || text != "") {
			return badKey("%s is not base64url of %d bytes", name, size)
		}
	}
	x, _ := decode64(j.X) // looked at above
	y, _ := decode64(j.Y)
	public, err := ecdsa.ParseUncompressedPublicKey(curve, append(append(point, x...), y...))
	if err != nil {
		return badKey("x and y are no point of the curve")
	}
	k.public = public
	if j.D == "" {
		return nil
	}
	d, _ := decode64(j.D)
	private, err := ecdsa.ParseRawPrivateKey(curve, d)
	if err != nil || !private.PublicKey.Equal(public) {
		return badKey("d does not belong to x and y")
	}
	k.private = private
	return nil
}

// edKey is Ed25519.
func edKey() *algorithm {
	return &algorithm{
		name: jwt.SigningMethodEdDSA.Alg(), kty: "OKP", method: jwt.SigningMethodEdDSA,
		load: loadEd,
		store: func(k *Key, j *jwk) {
			j.Crv, j.X = "Ed25519", encode64(k.public.(ed25519.PublicKey))
			if private, ok := k.private.(ed25519.PrivateKey); ok {
				j.D = encode64(private.Seed())
			}
		},
		generate: func(k *Key) error {
			public, private, err := ed25519.GenerateKey(rand.Reader)
			k.public, k.private = public, private
			return err
		},
	}
}

func loadEd(j *jwk, k *Key) error {
	if j.Crv != "Ed25519" {
		return badKey("crv %.16q does not go with alg EdDSA", j.Crv)
	}
	x, err := decode64(j.X)
	if err != nil || len(x) != ed25519.PublicKeySize {
		return badKey("x is not base64url of %d bytes", ed25519.PublicKeySize)
	}
	k.public = ed25519.PublicKey(x)
	if j.D == "" {
		return nil
	}
	d, err := decode64(j.D)
	if err != nil || len(d) != ed25519.SeedSize {
		return badKey("d is not base64url of %d bytes", ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(d)
	if !bytes.Equal(private[ed25519.SeedSize:], x) {
		return badKey("d does not belong to x")
	}
	k.private = private
	return nil
}

// rsaKey is RSA with one of its paddings.
func rsaKey(m jwt.SigningMethod) *algorithm {
	return &algorithm{
		name: m.Alg(), kty: "RSA", method: m,
		load: loadRSA,
		store: func(k *Key, j *jwk) {
			public := k.public.(*rsa.PublicKey)
			j.N, j.E = encode64(public.N.Bytes()), encode64(big.NewInt(int64(public.E)).Bytes())
			if private, ok := k.private.(*rsa.PrivateKey); ok {
				size := (public.N.BitLen() + 7) / 8
				j.D = encode64(private.D.FillBytes(make([]byte, size)))
				for field, value := range map[*string]*big.Int{
					&j.P: private.Primes[0], &j.Q: private.Primes[1],
					&j.Dp: private.Precomputed.Dp, &j.Dq: private.Precomputed.Dq, &j.Qi: private.Precomputed.Qinv,
				} {
					*field = encode64(value.FillBytes(make([]byte, (size+1)/2)))
				}
			}
		},
		generate: func(k *Key) error {
			private, err := rsa.GenerateKey(rand.Reader, newRSA)
			if err != nil {
				return err
			}
			k.private, k.public = private, &private.PublicKey
			return nil
		},
	}
}

func loadRSA(j *jwk, k *Key) error {
	n, err := number(j.N)
	if err != nil || n.BitLen() < minRSA || n.BitLen() > maxRSA {
		return badKey("n is not base64url of %d to %d bits", minRSA, maxRSA)
	}
	e, err := number(j.E)
	if err != nil || e.BitLen() > 31 || e.Bit(0) == 0 || e.Cmp(big.NewInt(3)) < 0 {
		return badKey("e is not base64url of an odd number from 3 to 2^31")
	}
	public := rsa.PublicKey{N: n, E: int(e.Int64())}
	k.public = &public
	private := rsa.PrivateKey{PublicKey: public}
	if j.D == "" {
		if j.P+j.Q+j.Dp+j.Dq+j.Qi != "" {
			return badKey("d is missing")
		}
		return nil
	}
	if private.D, err = number(j.D); err != nil {
		return badKey("d is not base64url")
	}
	for name, text := range map[string]string{"p": j.P, "q": j.Q} {
		prime, err := number(text)
		if err != nil || prime.BitLen() > maxRSA || prime.Sign() == 0 {
			return badKey("%s is not base64url, or missing", name)
		}
	}
	p, _ := number(j.P) // looked at above
	q, _ := number(j.Q)
	private.Primes = []*big.Int{p, q}
	if private.Validate() != nil { // its text may say too much
		return badKey("the private members do not belong together")
	}
	private.Precompute() // dp, dq and qi are worked out, whatever the file says
	k.private = &private
	return nil
}

// number reads a number in the form of JWK.
func number(text string) (*big.Int, error) {
	b, err := decode64(text)
	return new(big.Int).SetBytes(b), err
}
