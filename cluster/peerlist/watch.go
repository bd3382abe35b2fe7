package peerlist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/internal/filewatch"
	"github.com/moqmesh/moqmesh/internal/httpcache"
)

const (
	// checkInterval is how often a URL is looked at (C16); the cache decides whether that means a request.
	checkInterval = 30 * time.Second
	// readRetry is the pause after a file could not be read.
	readRetry = 2 * time.Second
	// firstRetry is the pause after a first check that failed; it doubles up to checkInterval (C20a).
	firstRetry = time.Second
	// maxBody bounds a list, in bytes.
	maxBody = 1 << 20
)

// Config of a Watch. Source and Apply are required.
type Config struct {
	Source Source
	// Self is our own address: entries that name it are left out, and servers are told it.
	Self cluster.Node
	// Client makes the requests; nil = http.DefaultClient. A client certificate and roots belong there (C15).
	Client *http.Client
	// Apply gets every list that differs from the one before, from the goroutine of Run.
	Apply  func([]cluster.Entry)
	Logger *slog.Logger // nil discards
}

// Watch keeps one list.
type Watch struct {
	cfg      Config
	log      *slog.Logger
	resource *httpcache.Resource // nil for a file
	read     func(name string) ([]byte, error)
	good     []byte // of Run: the last list that was accepted, as it was written
	have     bool   // good is valid

	mu     sync.Mutex
	status Status
}

// Status tells how a list fares, for pages.
type Status struct {
	Source string `json:"source"` // without path and query of a URL
	Peers  int    `json:"peers"`  // in the list that counts, ourselves left out
	// Changed is when that list came; zero before the first.
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"` // last
	// Error is why the last check gave no usable list; empty if it did.
	Error string `json:"error,omitempty"`
}

// New returns a Watch that does nothing until Run.
func New(cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Watch{cfg: cfg, log: cfg.Logger.With("source", cfg.Source.String()), read: readFile, status: Status{Source: cfg.Source.String()}}
	if cfg.Source.url != nil {
		w.resource = httpcache.New(httpcache.Config{
			URL: cfg.Source.request(cfg.Self), Client: cfg.Client, Limit: maxBody, Accept: "application/json",
		})
	}
	return w
}

// Status may be called at any time.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Run reads the list now and then until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	if w.resource != nil {
		w.poll(ctx)
		return
	}
	w.follow(ctx)
}

// poll looks at a URL.
func (w *Watch) poll(ctx context.Context) {
	retry := firstRetry
	for {
		body, err := w.resource.Get(ctx)
		if ctx.Err() != nil {
			return
		}
		err = withoutPorts(err)
		if !w.take(body, err) && err == nil {
			w.resource.Forget() // a list that is no good is not kept for as long as it would like to be
		}
		pause := checkInterval
		if !w.have { // the first checks come faster
			pause = min(retry, checkInterval)
			retry = min(2*retry, checkInterval)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// withoutPorts drops the addresses from errors of the network: the local port is another each time, and the same
// trouble is to be told once.
func withoutPorts(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow watches a file (C19).
func (w *Watch) follow(ctx context.Context) {
	watch := filewatch.New(w.cfg.Source.file)
	defer watch.Close()
	for {
		data, err := w.read(w.cfg.Source.file)
		w.take(data, err)
		var again <-chan time.Time
		if err != nil { // no event tells that it could be read now: descriptors may have been short
			again = time.After(readRetry)
		}
		select {
		case <-watch.Changes():
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

var (
	errNoFile   = errors.New("not a file")
	errTooLarge = fmt.Errorf("larger than %d bytes", maxBody)
)

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // a pipe would block
		err = errNoFile
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxBody+1))
	if err == nil && len(data) > maxBody {
		err = errTooLarge
	}
	return data, err
}

// take applies what a check has found, and reports whether that was a good list. Whatever is wrong with it, the last
// good one stays (C18).
func (w *Watch) take(data []byte, err error) bool {
	if err == nil && w.have && bytes.Equal(data, w.good) {
		w.note(nil, nil)
		return true
	}
	var list cluster.List
	if err == nil {
		list, err = Parse(data, w.cfg.Self)
	}
	if err != nil {
		w.note(nil, err)
		return false
	}
	w.good, w.have = bytes.Clone(data), true
	w.note(&list, nil)
	w.cfg.Apply(list.Entries)
	return true
}

// note records the outcome of a check, and logs it if it is news.
func (w *Watch) note(list *cluster.List, err error) {
	now := time.Now().UTC()
	w.mu.Lock()
	s := &w.status
	before := s.Error
	s.Checked, s.Error = now, ""
	if err != nil {
		s.Error = err.Error()
	}
	if list != nil {
		s.Changed, s.Peers = now, len(list.Entries)
	}
	after := s.Error
	peers := s.Peers
	w.mu.Unlock()
	switch {
	case err != nil && after != before:
		w.log.Warn("peer list cannot be used, keeping the last good one", "err", err, "peers", peers)
	case list != nil:
		w.log.Info("peer list accepted", "peers", peers, "self", list.Self)
	case err == nil && before != "":
		w.log.Info("peer list is as it was again", "peers", peers)
	}
}

// Check reads a list that is in a file, once, and tells what is wrong with it. Lists behind URLs are not asked for.
func Check(s Source, self cluster.Node) error {
	if s.url != nil {
		return nil
	}
	data, err := readFile(s.file)
	if err == nil {
		_, err = Parse(data, self)
	}
	return err
}
