package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Target is what is loaded.
type Target struct {
	Publish string // URL of the relay that is published to
	Watch   string // URL of the relay that viewers connect to; empty = Publish
	TLS     tlsconf.ClientConfig
	// Versions that viewers may speak, of those in Versions; nil = all of them.
	Versions []message.Version
	PIDs     []int // of the relays, for CPU time and memory
}

func (t Target) watch() string { return cmp.Or(t.Watch, t.Publish) }

func (t Target) versions() []message.Version {
	if len(t.Versions) == 0 {
		return Versions
	}
	return t.Versions
}

// client is the configuration of sessions that use the whole client library.
func (t Target) client(role client.Role) client.Config {
	return client.Config{Role: role, TLS: t.TLS, Versions: t.versions()}
}

// parse reads a URL without repeating it in errors.
func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return nil, client.ErrURL
	}
	return u, nil
}

// dialTimeout bounds the dial of one viewer.
const dialTimeout = 30 * time.Second

// hall is a set of sockets that viewers share, and what they count.
type hall struct {
	url     *url.URL
	seats   int // viewers per socket
	dialers []*endpoint.Dialer
	shards  []*shard
}

// newHall opens the sockets for n viewers.
func (t Target) newHall(n, perSocket int) (_ *hall, err error) {
	h := &hall{seats: perSocket}
	if h.url, err = parse(t.watch()); err != nil {
		return nil, err
	}
	for range (n + perSocket - 1) / perSocket {
		socket, err := listen()
		if err == nil {
			var d *endpoint.Dialer
			d, err = endpoint.NewDialer(endpoint.DialConfig{
				PacketConn: socket, TLS: t.TLS, Protocols: tokens(t.versions()), Timeout: dialTimeout,
			})
			h.dialers = append(h.dialers, d)
		}
		if err != nil {
			h.close()
			return nil, fmt.Errorf("socket: %w", err)
		}
		h.shards = append(h.shards, &shard{})
	}
	return h, nil
}

// dial opens the session of viewer i.
func (h *hall) dial(ctx context.Context, i int) (*thin, error) {
	conn, err := h.dialers[i/h.seats].Dial(ctx, endpoint.Target{URL: h.url})
	if err != nil {
		return nil, err
	}
	t, err := begin(ctx, conn, h.url)
	if err != nil {
		conn.Close(0, "")
	}
	return t, err
}

// shard is what viewer i counts into.
func (h *hall) shard(i int) *shard { return h.shards[i/h.seats] }

// close closes the sockets and the sessions on them.
func (h *hall) close() {
	for _, d := range h.dialers {
		if d != nil {
			_ = d.Close() // nothing was to be kept
		}
	}
}
