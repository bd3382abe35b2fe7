package auth

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"
)

// Identity is what a verified client certificate says. By itself it admits nobody (A3).
type Identity struct {
	Name        string // first DNS name, else common name, else the fingerprint
	Fingerprint string // SHA-256 in hex
	Expires     time.Time
	Issuer      string // distinguished name
}

// IdentityOf reads the leaf of a verified chain; nil if there is none.
func IdentityOf(chain []*x509.Certificate) *Identity {
	if len(chain) == 0 {
		return nil
	}
	leaf := chain[0]
	sum := sha256.Sum256(leaf.Raw)
	id := &Identity{
		Name: leaf.Subject.CommonName, Fingerprint: hex.EncodeToString(sum[:]),
		Expires: leaf.NotAfter, Issuer: leaf.Issuer.String(),
	}
	switch {
	case len(leaf.DNSNames) > 0:
		id.Name = leaf.DNSNames[0]
	case id.Name == "":
		id.Name = id.Fingerprint
	}
	return id
}
