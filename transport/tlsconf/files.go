package tlsconf

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// file is a certificate that comes from files.
type file struct {
	Pair
	certPEM, keyPEM []byte // of cert
	cert            *tls.Certificate
	problem         string // why the files, as they are now, cannot be used
	invalid         bool   // cert is expired, or not valid yet, and the log has it
}

// load reads the files. fresh tells that they hold another certificate than before; after an error
// the last good one stays.
func (f *file) load() (fresh bool, err error) {
	certPEM, err := os.ReadFile(f.Cert)
	if err != nil {
		return false, err
	}
	keyPEM, err := os.ReadFile(f.Key)
	if err != nil {
		return false, err
	}
	if bytes.Equal(certPEM, f.certPEM) && bytes.Equal(keyPEM, f.keyPEM) {
		return false, nil
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return false, fmt.Errorf("%s with key %s: %w", f.Cert, f.Key, err)
	}
	f.certPEM, f.keyPEM, f.cert = certPEM, keyPEM, &cert
	return true, nil
}

// watcher tells when something happens in the directories of the files. Watching files themselves
// would lose those that are replaced by renaming or behind a link. All methods work on nil.
type watcher struct {
	w *fsnotify.Watcher
}

func watch(pairs []Pair) (*watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		for _, name := range []string{p.Cert, p.Key} {
			if err := w.Add(filepath.Dir(name)); err != nil {
				_ = w.Close()
				return nil, err
			}
		}
	}
	return &watcher{w}, nil
}

func (w *watcher) events() <-chan fsnotify.Event {
	if w == nil {
		return nil
	}
	return w.w.Events
}

func (w *watcher) errors() <-chan error {
	if w == nil {
		return nil
	}
	return w.w.Errors
}

func (w *watcher) close() {
	if w != nil {
		_ = w.w.Close()
	}
}
