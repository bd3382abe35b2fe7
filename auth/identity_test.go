package auth_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/auth"
)

func TestIdentity(t *testing.T) {
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc"
	issuer := pkix.Name{CommonName: "ca", Organization: []string{"o"}}
	end := time.Unix(5, 0)
	for _, tt := range []struct {
		cert *x509.Certificate
		name string
	}{
		{&x509.Certificate{DNSNames: []string{"a.example", "b"}, Subject: pkix.Name{CommonName: "c"}}, "a.example"},
		{&x509.Certificate{Subject: pkix.Name{CommonName: "c"}}, "c"},
		{&x509.Certificate{}, sum},
	} {
		tt.cert.Raw, tt.cert.NotAfter, tt.cert.Issuer = []byte("abc"), end, issuer
		want := &auth.Identity{Name: tt.name, Fingerprint: sum, Expires: end, Issuer: "CN=ca,O=o"}
		if diff := cmp.Diff(want, auth.IdentityOf([]*x509.Certificate{tt.cert, {}})); diff != "" {
			t.Error(diff)
		}
	}
	if auth.IdentityOf(nil) != nil {
		t.Error("nobody has an identity")
	}
}
