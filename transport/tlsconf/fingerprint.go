package tlsconf

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
)

// Fingerprint is the SHA-256 of a certificate in DER form, as browsers take it in
// serverCertificateHashes and as GET /certificate.sha256 publishes it.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a certificate.
func FingerprintOf(cert *x509.Certificate) Fingerprint { return sha256.Sum256(cert.Raw) }

// ParseFingerprint reads 64 hex digits of either case.
func ParseFingerprint(s string) (Fingerprint, error) {
	var f Fingerprint
	if len(s) != hex.EncodedLen(len(f)) {
		return f, fmt.Errorf("certificate fingerprint: want %d hex digits, got %d characters", hex.EncodedLen(len(f)), len(s))
	}
	if _, err := hex.Decode(f[:], []byte(s)); err != nil {
		return f, fmt.Errorf("certificate fingerprint: %w", err)
	}
	return f, nil
}

// String returns 64 lower-case hex digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }
