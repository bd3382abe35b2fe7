package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
)

// ErrFingerprint means that the server's certificate has none of the pinned fingerprints.
var ErrFingerprint = errors.New("certificate has none of the pinned fingerprints")

// ClientConfig says which servers a dialer trusts and how it identifies itself. The zero value
// trusts the system's roots.
type ClientConfig struct {
	// Roots replaces the system's roots; nil means the system's.
	Roots *x509.CertPool
	// Fingerprints pins leaf certificates. If there are any, a server is trusted if and only if its
	// leaf is one of them: neither chain, nor name, nor validity period is looked at.
	Fingerprints []Fingerprint
	// Certificate is presented when the server asks for one; nil presents none.
	Certificate *tls.Certificate
	// RootFiles takes the place of Roots: each TLS configuration has the authorities of its time. Nil = Roots count.
	RootFiles *Roots
	// KeyPair takes the place of Certificate: each handshake presents the one of its time. Nil = Certificate counts.
	KeyPair *KeyPair
	// Insecure trusts every certificate.
	Insecure bool
	// ServerName overrides the host name that is sent as SNI and that the certificate must carry.
	ServerName string
}

// TLS returns a client configuration for one server. host is the host of the dialed URL, without
// port or brackets; an IP literal is verified as an address and sends no SNI.
func (c ClientConfig) TLS(host string, protocols []string) *tls.Config {
	conf := &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: host,
		NextProtos: protocols,
		RootCAs:    c.Roots,
	}
	if c.ServerName != "" {
		conf.ServerName = c.ServerName
	}
	if c.RootFiles != nil {
		conf.RootCAs = c.RootFiles.Pool()
	}
	if c.Certificate != nil || c.KeyPair != nil {
		// Not Certificates: crypto/tls would withhold it from a server that names other issuers.
		conf.GetClientCertificate = c.present
	}
	switch {
	case c.Insecure:
		conf.InsecureSkipVerify = true
	case len(c.Fingerprints) > 0:
		conf.InsecureSkipVerify = true
		conf.VerifyConnection = c.verifyPin
	}
	return conf
}

func (c ClientConfig) present(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c.KeyPair != nil {
		return c.KeyPair.Certificate(), nil
	}
	return c.Certificate, nil
}

func (c ClientConfig) verifyPin(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 || !slices.Contains(c.Fingerprints, FingerprintOf(state.PeerCertificates[0])) {
		return ErrFingerprint
	}
	return nil
}
