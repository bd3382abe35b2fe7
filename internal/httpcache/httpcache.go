package httpcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Defaults and limits.
const (
	DefaultTimeout = 10 * time.Second // of one request, body included
	DefaultLimit   = 1 << 20          // bytes of a body, after decompression
	// MaxAge is how long a response counts as fresh at most, whatever it says.
	MaxAge = time.Hour
	// MaxPostpone is how long Retry-After is obeyed at most.
	MaxPostpone = 5 * time.Minute

	maxRedirects = 10
)

// Errors of Get.
var (
	ErrTooLarge  = errors.New("the body is too large")
	ErrEncoding  = errors.New("the body has an encoding that was not asked for")
	ErrDowngrade = errors.New("redirected from https to another scheme")
	ErrRedirects = errors.New("too many redirects")
	ErrNoStored  = errors.New("304 Not Modified, but there is nothing stored")
)

// StatusError is an answer with another status than 200 and 304.
type StatusError struct {
	Status int
	// Until is when the server wants to be asked again (Retry-After, capped); zero if it did not say.
	Until time.Time
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status))
}

// Config of a Resource. Only URL is required.
type Config struct {
	// URL may hold a credential: it is in no error text.
	URL     string
	Client  *http.Client  // nil = http.DefaultClient; its CheckRedirect is not used
	Timeout time.Duration // 0 = DefaultTimeout
	Limit   int64         // 0 = DefaultLimit
	Accept  string        // header of the request; empty = none
}

// Resource is one URL and its last response. Its methods may be called concurrently; requests come one at a time.
type Resource struct {
	cfg    Config
	client http.Client

	mu      sync.Mutex
	stored  *response
	refused *StatusError // while it asks for patience
}

// New returns a Resource with nothing stored. It sends no request.
func New(cfg Config) *Resource {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	r := &Resource{cfg: cfg, client: *http.DefaultClient}
	if cfg.Client != nil {
		r.client = *cfg.Client
	}
	r.client.CheckRedirect = checkRedirect
	return r
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return ErrRedirects
	case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
		return ErrDowngrade
	}
	return nil
}

// Get returns what the URL holds: the stored body while that is fresh, else what the server says now. The body is
// shared, so it must not be written to. After an error a later call tries again, but not before the time that the
// server asked for; until then the same error comes back without a request.
func (r *Resource) Get(ctx context.Context) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.stored != nil && now.Before(r.stored.freshUntil) {
		return r.stored.body, nil
	}
	if r.refused != nil && now.Before(r.refused.Until) {
		return nil, r.refused
	}
	r.refused = nil
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	body, err := r.request(ctx, now)
	if failed, ok := errors.AsType[*url.Error](err); ok { // quotes the URL
		err = failed.Err
	}
	return body, err
}

// Forget drops the stored response, for a body that turned out to be useless: the next Get asks for a whole one.
func (r *Resource) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = nil
}

func (r *Resource) request(ctx context.Context, sent time.Time) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL, nil)
	if err != nil {
		return nil, err
	}
	if r.cfg.Accept != "" {
		req.Header.Set("Accept", r.cfg.Accept)
	}
	if r.stored != nil {
		r.stored.makeConditional(req.Header)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	received := time.Now()
	switch {
	case res.StatusCode == http.StatusNotModified && r.stored != nil:
		r.stored.update(res.Header, sent, received)
		return r.stored.body, nil
	case res.StatusCode == http.StatusNotModified:
		return nil, ErrNoStored
	case res.StatusCode != http.StatusOK:
		failed := &StatusError{Status: res.StatusCode, Until: retryAt(res.StatusCode, res.Header, received)}
		r.refused = failed
		return nil, failed
	}
	body, err := r.read(res)
	if err != nil {
		return nil, err
	}
	r.stored = store(body, res.Header, sent, received)
	return body, nil
}

// read takes the body whole, or fails.
func (r *Resource) read(res *http.Response) ([]byte, error) {
	if enc := res.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, ErrEncoding // gzip was undone by the transport already
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, r.cfg.Limit+1))
	if err != nil {
		return nil, fmt.Errorf("the body: %w", err)
	}
	if int64(len(body)) > r.cfg.Limit {
		return nil, ErrTooLarge
	}
	return body, nil
}
