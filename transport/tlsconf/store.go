package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNoCertificate means that a store was given neither files nor names.
var ErrNoCertificate = errors.New("no certificate configured")

const (
	// checkInterval is how often files and the generated certificate are looked at in any case. Changes
	// of files are usually noticed at once.
	checkInterval = 30 * time.Second
	// settle is how long a change of files may take: certificate and key do not change together.
	settle = 100 * time.Millisecond
)

// Pair names the PEM files of one certificate chain and its key.
type Pair struct {
	Cert, Key string
}

// Config says what a Store serves. At least one of Pairs and Generate is needed.
type Config struct {
	// Pairs are certificate files, the default first. They are read again when they change; one that
	// has become unreadable keeps its last good certificate.
	Pairs []Pair
	// Generate lists host names and IP addresses for a self-signed certificate, which comes after
	// the files in the order of preference and is renewed long before it expires.
	Generate []string
	// OnChange is called after the served certificates changed, from a goroutine of the store and
	// outside its locks. It must not block for long.
	OnChange func()
	// Logger gets one line per change, and one per new reason for a file that cannot be used. Nil logs
	// nothing.
	Logger *slog.Logger
}

// Store serves the certificates of a listener.
type Store struct {
	cfg   Config
	certs atomic.Pointer[[]*tls.Certificate] // never empty; what it points to is not written again

	// Of the goroutine, and of Open before it starts.
	files     []*file
	generated *tls.Certificate
	watcher   *watcher // nil: there is nothing to watch, or no way to

	stop  chan struct{}
	done  chan struct{}
	close sync.Once
}

// Open loads and generates what cfg names and starts to watch it. The caller must Close the store.
func Open(cfg Config) (*Store, error) {
	if len(cfg.Pairs)+len(cfg.Generate) == 0 {
		return nil, ErrNoCertificate
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, stop: make(chan struct{}), done: make(chan struct{})}
	for _, p := range cfg.Pairs {
		f := &file{Pair: p}
		if _, err := f.load(); err != nil {
			return nil, fmt.Errorf("load certificate: %w", err)
		}
		s.files = append(s.files, f)
	}
	if _, err := s.renew(time.Now()); err != nil {
		return nil, fmt.Errorf("generate certificate: %w", err)
	}
	s.publish()
	s.checkValidity(time.Now())
	if len(s.files) > 0 {
		var err error
		if s.watcher, err = watch(cfg.Pairs); err != nil {
			cfg.Logger.Warn("cannot watch certificate files, looking at them now and then instead",
				"interval", checkInterval, "err", err)
		}
	}
	go s.run()
	return s, nil
}

// GetCertificate picks the first certificate that suits the client (name and signature scheme), or
// the first of all: for clients without SNI, and for names nobody has.
func (s *Store) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	certs := *s.certs.Load()
	for _, c := range certs {
		if hello.SupportsCertificate(c) == nil {
			return c, nil
		}
	}
	return certs[0], nil
}

// Fingerprint returns the SHA-256 of the first certificate's leaf as 64 lower-case hex digits, the
// body of GET /certificate.sha256.
func (s *Store) Fingerprint() string { return FingerprintOf((*s.certs.Load())[0].Leaf).String() }

// Secret returns the private key of the first file in PKCS #8 form, for keys that are to survive a
// restart to be derived from. Nil if there is no file: a generated certificate does not survive either.
func (s *Store) Secret() []byte {
	if len(s.cfg.Pairs) == 0 {
		return nil
	}
	der, err := x509.MarshalPKCS8PrivateKey((*s.certs.Load())[0].PrivateKey)
	if err != nil {
		return nil
	}
	return der
}

// Server returns the TLS configuration of a listener, QUIC or TCP: certificates from the store and, where clients is not
// nil, optional client certificates that must chain to those authorities, as they are at the time of the handshake.
func (s *Store) Server(clients *Roots) *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.GetCertificate}
	if clients == nil {
		return conf
	}
	conf.ClientAuth, conf.ClientCAs = tls.VerifyClientCertIfGiven, clients.Pool()
	var mu sync.Mutex
	current := conf
	conf.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool := clients.Pool()
		mu.Lock()
		defer mu.Unlock()
		if current.ClientCAs != pool {
			// No clone: whoever was verified by authorities that are gone must not resume its session.
			current = &tls.Config{
				MinVersion: conf.MinVersion, NextProtos: conf.NextProtos, GetCertificate: s.GetCertificate,
				ClientAuth: conf.ClientAuth, ClientCAs: pool,
			}
		}
		if current == conf {
			return nil, nil //nolint:nilnil // the configuration stays as it is
		}
		return current, nil
	}
	return conf
}

// Close stops watching and returns when the goroutine of the store has ended. The certificates can
// still be served.
func (s *Store) Close() error {
	s.close.Do(func() { close(s.stop) })
	<-s.done
	return nil
}

func (s *Store) run() {
	defer close(s.done)
	defer s.watcher.close()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.watcher.events():
			quiet.Reset(settle)
			continue
		case err := <-s.watcher.errors():
			s.cfg.Logger.Debug("watch certificate files", "err", err)
			continue
		case <-quiet.C:
		case <-tick.C:
		}
		s.check(time.Now())
	}
}

// check reads the files again and renews the generated certificate if it is time.
func (s *Store) check(now time.Time) {
	changed := false
	for _, f := range s.files {
		fresh, err := f.load()
		switch {
		case err == nil:
			f.problem = ""
			changed = changed || fresh
		case err.Error() != f.problem:
			f.problem = err.Error()
			s.cfg.Logger.Error("certificate not reloaded, keeping the last good one", "cert", f.Cert, "err", err)
		}
	}
	s.checkValidity(now)
	renewed, err := s.renew(now)
	if err != nil {
		s.cfg.Logger.Error("certificate not renewed", "err", err)
	}
	if !changed && !renewed {
		return
	}
	s.publish()
	s.cfg.Logger.Info("certificates changed", "fingerprint", s.Fingerprint(), "expires", s.expiry())
	if s.cfg.OnChange != nil {
		s.cfg.OnChange()
	}
}

// checkValidity warns, once, of a certificate that clients will not accept for its time. It is served all the same: the
// clock may be wrong, and a pinned certificate counts whatever its time.
func (s *Store) checkValidity(now time.Time) {
	for _, f := range s.files {
		leaf := f.cert.Leaf
		invalid := now.Before(leaf.NotBefore) || now.After(leaf.NotAfter)
		if invalid && !f.invalid {
			s.cfg.Logger.Warn("certificate is not valid now", "cert", f.Cert, "from", leaf.NotBefore, "until", leaf.NotAfter)
		}
		f.invalid = invalid
	}
}

// renew generates a certificate if there is to be one and the present one is old.
func (s *Store) renew(now time.Time) (renewed bool, err error) {
	if len(s.cfg.Generate) == 0 || (s.generated != nil && now.Before(s.generated.Leaf.NotBefore.Add(renewAfter))) {
		return false, nil
	}
	cert, err := SelfSigned(s.cfg.Generate, now)
	if err != nil {
		return false, err
	}
	s.generated = cert
	return true, nil
}

func (s *Store) publish() {
	certs := make([]*tls.Certificate, 0, len(s.files)+1)
	for _, f := range s.files {
		certs = append(certs, f.cert)
	}
	if s.generated != nil {
		certs = append(certs, s.generated)
	}
	s.certs.Store(&certs)
}

func (s *Store) expiry() time.Time {
	var first time.Time
	for _, c := range *s.certs.Load() {
		if end := c.Leaf.NotAfter; first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}
