// Package tool holds the commands that publish, watch and check media: pub, sub, announced and fetch. The structs carry
// the flags as tags for kong; Run does the work and returns nil where the exit status is 0, an error of one line where
// it is 1. Standard output has one JSON object per line, with the time in Unix milliseconds as t and the kind of event
// as ev, but for media on request. An interrupt or SIGTERM ends each command as if its time were up.
package tool

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/client"
)

// Streams is where a command reads and writes; main binds the process's own.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // log lines
}

// Dial are the flags of every command that connects to a relay.
type Dial struct {
	Version  string   `help:"Speak only this version: lite-01 to lite-06." placeholder:"VERSION"`
	Insecure bool     `help:"Trust any certificate."`
	Hash     []string `help:"Trust the certificate with this SHA-256, in hex." placeholder:"HEX"`
	Root     []string `help:"Trust the CAs in this PEM file instead of the system's." placeholder:"FILE"`
	Debug    bool     `help:"Log to standard error."`
}

// Help is the text on URLs that the commands' help shows.
const Help = `URL is https://host[:port]/path for WebTransport, moqt:// for raw QUIC, or wss:// and ws:// for WebSocket. With http:// the hash of
the certificate is fetched from /certificate.sha256 on that TCP port, and WebTransport dialed on the same UDP port.`

// Config turns the flags into what the client library wants.
func (d *Dial) Config(s *Streams) (client.Config, error) {
	cfg := client.Config{Logger: slog.New(slog.DiscardHandler)}
	if d.Debug {
		cfg.Logger = slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if d.Version != "" {
		v, err := client.ParseVersion(d.Version)
		if err != nil {
			return cfg, err
		}
		cfg.Versions = []client.Version{v}
	}
	cfg.TLS.Insecure = d.Insecure
	for _, h := range d.Hash {
		pin, err := client.ParseFingerprint(h)
		if err != nil {
			return cfg, fmt.Errorf("--hash: %w", err)
		}
		cfg.TLS.Fingerprints = append(cfg.TLS.Fingerprints, pin)
	}
	for _, file := range d.Root {
		pem, err := os.ReadFile(file)
		if err != nil {
			return cfg, fmt.Errorf("--root: %w", err)
		}
		if cfg.TLS.Roots == nil {
			cfg.TLS.Roots = x509.NewCertPool()
		}
		if !cfg.TLS.Roots.AppendCertsFromPEM(pem) {
			return cfg, fmt.Errorf("--root: %s holds no certificate", file)
		}
	}
	return cfg, nil
}

// How long commands try an address where nobody listens, and how often: they may have been started beside the relay.
const (
	dialPatience = 3 * time.Second
	dialPause    = 100 * time.Millisecond
)

// dial connects to a relay.
func dial(ctx context.Context, rawURL string, cfg client.Config) (*client.Client, error) {
	for end := time.Now().Add(dialPatience); ; {
		cl, err := client.Dial(ctx, rawURL, cfg)
		if !errors.Is(err, syscall.ECONNREFUSED) || !time.Now().Before(end) {
			return cl, err
		}
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// untilSignal derives a context that ends at the first interrupt or SIGTERM.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// events writes JSON lines. It is safe for concurrent use; the first error sticks.
type events struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// head is what every line begins with.
type head struct {
	T  int64  `json:"t"`
	Ev string `json:"ev"`
}

func event(name string) head { return head{T: time.Now().UnixMilli(), Ev: name} }

// say writes a line: a struct that embeds head.
func (e *events) say(line any) {
	text, err := json.Marshal(line)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.err == nil {
		_, err = e.out.Write(append(text, '\n'))
	}
	if e.err == nil {
		e.err = err
	}
}

// failed is the first error of writing.
func (e *events) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// milliseconds is d with three decimals.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// seconds is a duration given as a number of seconds.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// after is a channel that delivers once d has passed; never if d is 0.
func after(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
