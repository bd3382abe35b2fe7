package token_test

import (
	"errors"
	"testing"

	"github.com/moqmesh/moqmesh/auth/token"
)

// FuzzVerify: whatever comes as a token is refused, unless it is the one that was signed.
func FuzzVerify(f *testing.F) {
	f.Add(vectorToken)
	f.Add(rustEdDSAToken)
	f.Add("..")
	k := parse(f, vectorKey)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := k.Verify(text, now)
		switch {
		case err == nil && text != vectorToken:
			t.Fatalf("accepted: %+v", c)
		case err != nil && !errors.Is(err, token.ErrToken):
			t.Fatal(err)
		}
	})
}

// FuzzClaims: any claims, properly signed, are refused or say something that survives being written again.
func FuzzClaims(f *testing.F) {
	for _, s := range []string{
		`{"root":"demo","put":["alice"],"get":[""],"exp":4102444800}`, `{"publish":["a/*","**/b"]}`, `{"put":"","nbf":1.5}`,
	} {
		f.Add(s)
	}
	k := parse(f, vectorKey)
	f.Fuzz(func(t *testing.T, claims string) {
		c, err := k.Verify(token.Seal(k, `{"alg":"HS256"}`, claims), now)
		if err != nil {
			if !errors.Is(err, token.ErrToken) {
				t.Fatal(err)
			}
			return
		}
		text, err := k.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := k.Verify(text, now)
		if errors.Is(err, token.ErrExpired) { // a fraction of a second was cut off
			return
		}
		if err != nil || again.Root != c.Root || !again.Publish.Equal(c.Publish) || !again.Subscribe.Equal(c.Subscribe) {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}

// FuzzKey: whatever comes as a key is refused, or is the same key after it was written.
func FuzzKey(f *testing.F) {
	f.Add([]byte(vectorKey))
	f.Add([]byte(vectorFile))
	f.Add([]byte(rustEdDSA))
	for _, alg := range []string{"ES256", "ES384", "EdDSA", "RS256"} {
		k, err := token.Generate(alg, "x")
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(k.Encode()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := token.Parse(data)
		if err != nil {
			if !errors.Is(err, token.ErrKey) {
				t.Fatal(err)
			}
			return
		}
		again, err := token.Parse([]byte(k.Encode()))
		if err != nil || again.Encode() != k.Encode() || again.ID() != k.ID() {
			t.Fatalf("%v, %v", again, err)
		}
	})
}
