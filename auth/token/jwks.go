package token

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/internal/httpcache"
)

const (
	// keysPause is the least time between two questions for a set of keys, whatever brings them about.
	keysPause = 10 * time.Second
	// keysTimeout bounds one of them. Whoever causes it waits for so long, even beyond the end of its context.
	keysTimeout = 5 * time.Second
)

// Remote is a set of keys behind a URL (a JWKS). It is asked for when it is needed for the first time, when its answer
// has become stale, and when a token names a key that is not in it; at most every 10 s. While it cannot be had the last
// good one counts. Only public keys are taken: what everybody can read is no secret.
type Remote struct {
	resource *httpcache.Resource
	log      *slog.Logger

	mu    sync.Mutex
	set   map[string]*Key // nil before the first good answer
	asked time.Time
	err   error         // of the last question
	busy  chan struct{} // closed when the question under way has ended; nil = none is
}

var _ Keys = (*Remote)(nil)

// NewRemote returns a set that has not been asked for yet. The URL must be https, or http to a loopback address. client
// may be nil, and so may be log.
func NewRemote(address string, client *http.Client, log *slog.Logger) (*Remote, error) {
	if err := CheckURL(address); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Remote{
		resource: httpcache.New(httpcache.Config{
			URL: address, Client: client, Timeout: keysTimeout, Limit: 1 << 20, Accept: "application/jwk-set+json, application/json",
		}),
		log: log,
	}, nil
}

// CheckURL accepts what keys may be fetched from. Its error does not quote the URL, which may hold a credential.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return errors.New("not a URL such as https://example.com/keys")
	case u.Scheme == "https":
	case u.Scheme != "http":
		return errors.New("only https, and http to a loopback address, can be trusted")
	case !loopback(u.Hostname()):
		return errors.New("http is for loopback addresses only, use https")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Key implements Keys.
func (r *Remote) Key(ctx context.Context, id string) (*Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, known := r.find(id)
	for r.busy != nil && !known { // somebody is asking
		busy := r.busy
		r.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		}
		r.mu.Lock()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
		k, known = r.find(id)
	}
	if r.busy == nil && time.Since(r.asked) >= keysPause {
		r.refresh(ctx, known)
		k, known = r.find(id)
	}
	switch {
	case known:
		return k, nil
	case r.err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, r.err)
	}
	return nil, ErrNoKey
}

// find looks into the last good set. r.mu is held.
func (r *Remote) find(id string) (*Key, bool) {
	if id == "" && len(r.set) == 1 {
		for _, k := range r.set {
			return k, true
		}
	}
	k := r.set[id]
	return k, k != nil && id != ""
}

// refresh asks for the set, unless the last answer is still fresh and has what is looked for. r.mu is held, and
// released meanwhile.
func (r *Remote) refresh(ctx context.Context, known bool) {
	busy := make(chan struct{})
	r.busy, r.asked = busy, time.Now()
	r.mu.Unlock()
	if !known {
		r.resource.Forget()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	body, err := r.resource.Get(ctx)
	cancel()
	var set map[string]*Key
	if err == nil {
		if set, err = parseRemote(body); err != nil {
			r.resource.Forget()
		}
	}
	if err != nil {
		r.log.Warn("the set of keys could not be refreshed", "error", err)
	}
	r.mu.Lock()
	if r.err = err; err == nil {
		r.set = set
	}
	r.busy = nil
	close(busy)
}

// parseRemote takes from a fetched set the keys that can be used here; others are for others. None at all is an error:
// that is hardly what the server means.
func parseRemote(body []byte) (map[string]*Key, error) {
	items, isSet, err := members(body)
	if err != nil {
		return nil, err
	}
	if !isSet {
		return nil, badKey("not a set of keys")
	}
	set := make(map[string]*Key)
	for _, item := range items {
		k, err := parseJWK(item)
		if err != nil || k.Symmetric() || !k.CanVerify() || set[k.id] != nil {
			continue
		}
		k.private = nil
		set[k.id] = k
	}
	if len(set) == 0 {
		return nil, badKey("no usable public key among %d", len(items))
	}
	return set, nil
}
