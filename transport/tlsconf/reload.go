package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is how often files are looked at for changes, at most: once per handshake would be often on a busy listener.
const lookEvery = time.Second

// reloading holds what is made of files, and makes it anew when they have changed, as soon as somebody asks for it. It
// has no goroutine. While the files cannot be used, what was made last stays.
type reloading[T any] struct {
	files []string
	load  func() (T, error)
	what  string // for log lines
	log   *slog.Logger

	mu      sync.Mutex
	value   T
	looked  time.Time
	seen    []os.FileInfo
	problem string
}

// open loads for the first time.
func (r *reloading[T]) open() error {
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.seen = r.stat() // before: a change in between is found at the next look
	var err error
	r.value, err = r.load()
	r.looked = time.Now()
	return err
}

func (r *reloading[T]) stat() []os.FileInfo {
	out := make([]os.FileInfo, len(r.files))
	for i, f := range r.files {
		out[i], _ = os.Stat(f)
	}
	return out
}

// get returns what is in the files now.
func (r *reloading[T]) get() T {
	if len(r.files) == 0 {
		return r.value
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.looked) < lookEvery {
		return r.value
	}
	r.looked = now
	seen := r.stat()
	if unchanged(seen, r.seen) && r.problem == "" {
		return r.value
	}
	value, err := r.load()
	switch {
	case err == nil:
		r.value, r.seen, r.problem = value, seen, ""
		r.log.Info(r.what + " read again")
	case err.Error() != r.problem:
		r.problem = err.Error()
		r.log.Error(r.what+" not read again, keeping the last good ones", "err", err)
	}
	return r.value
}

func unchanged(a, b []os.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			return false
		case !os.SameFile(a[i], b[i]), a[i].Size() != b[i].Size(), !a[i].ModTime().Equal(b[i].ModTime()):
			return false
		}
	}
	return true
}

// Roots are certificate authorities in files.
type Roots struct{ r reloading[*x509.CertPool] }

// OpenRoots reads PEM files, each with one authority at least. system adds the authorities of the system. logger may be
// nil; what names them in log lines.
func OpenRoots(what string, files []string, system bool, logger *slog.Logger) (*Roots, error) {
	out := &Roots{reloading[*x509.CertPool]{files: files, what: what, log: logger, load: func() (*x509.CertPool, error) {
		return readRoots(files, system)
	}}}
	if err := out.r.open(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}

// FixedRoots are authorities that do not change; nil of nil.
func FixedRoots(pool *x509.CertPool) *Roots {
	if pool == nil {
		return nil
	}
	return &Roots{reloading[*x509.CertPool]{value: pool}}
}

// Pool holds the authorities that are in the files now. It is the same one until they change.
func (r *Roots) Pool() *x509.CertPool { return r.r.get() }

func readRoots(files []string, system bool) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if system {
		all, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		pool = all
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", file)
		}
	}
	return pool, nil
}

// KeyPair is a certificate in files that a dialer presents.
type KeyPair struct{ r reloading[*tls.Certificate] }

// OpenKeyPair reads a certificate and its key. logger may be nil; what names them in log lines.
func OpenKeyPair(what string, p Pair, logger *slog.Logger) (*KeyPair, error) {
	out := &KeyPair{reloading[*tls.Certificate]{files: []string{p.Cert, p.Key}, what: what, log: logger, load: func() (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		return &cert, err
	}}}
	if err := out.r.open(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}

// Certificate is the one that is in the files now.
func (k *KeyPair) Certificate() *tls.Certificate { return k.r.get() }
