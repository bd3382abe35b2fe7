package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
)

// Pair names the PEM files of one certificate chain and its key.
type Pair struct {
	Cert, Key string
}

// Config says what a Store serves. At least one of Pairs and Generate is needed.
type Config struct {
	// Pairs are certificate files, the default first. They are read again when they change.
	Pairs []Pair
	// Generate lists host names and IP addresses for a self-signed certificate, which comes after
	// the files in the order of preference and is renewed long before it expires.
	Generate []string
	// OnChange is called after the served certificates changed, from a goroutine of the store and
	// outside its locks. It must not block for long.
	OnChange func()
	// Logger gets one line per reload and per new reason for a failing one. Nil logs nothing.
	Logger *slog.Logger
}

// Store serves the certificates of a listener.
type Store struct{}

// Open loads and generates what cfg names and starts to watch it. The caller must Close the store.
func Open(cfg Config) (*Store, error) { return nil, errors.ErrUnsupported }

// GetCertificate picks the first certificate that suits the client (name and signature scheme), or
// the first of all: for clients without SNI, and for names nobody has.
func (s *Store) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.ErrUnsupported
}

// Fingerprint returns the SHA-256 of the first certificate's leaf as 64 lower-case hex digits, the
// body of GET /certificate.sha256.
func (s *Store) Fingerprint() string { return "" }

// Close stops watching and returns when the goroutine of the store has ended. The certificates can
// still be served.
func (s *Store) Close() error { return nil }

// Server returns the TLS configuration of a listener: certificates from the store and, where
// clientRoots is not nil, optional client certificates that must chain to them.
func (s *Store) Server(clientRoots *x509.CertPool) *tls.Config { return nil }
