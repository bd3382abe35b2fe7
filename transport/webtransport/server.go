package webtransport

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/dunglas/httpsfv"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// maxHeaderBytes limits the headers of a request. A token in the query is the largest thing we expect.
const maxHeaderBytes = 32 << 10

// ServerConfig is what Accept needs to know of the server.
type ServerConfig struct {
	// Protocols are the sub-protocols to accept. The first one of the client's list that is among
	// them is taken; if there is none, the session has no protocol.
	Protocols []string
	// Handler answers requests that are no WebTransport CONNECT; nil answers 404.
	Handler http.Handler
}

// Accept serves HTTP/3 on a connection until the client opens a session, whatever its origin. It owns the
// connection: if it fails, because ctx or the connection ended first, the connection is closed.
func Accept(ctx context.Context, q *quic.Conn, cfg ServerConfig) (*Conn, error) {
	if cfg.Handler == nil {
		cfg.Handler = http.NotFoundHandler()
	}
	a := &acceptor{q: q, cfg: cfg, http: newPeerStreams(q)}
	h3 := &http3.Server{
		Handler:            a,
		EnableDatagrams:    true,
		MaxHeaderBytes:     maxHeaderBytes,
		AdditionalSettings: settings(false),
		Logger:             slog.New(slog.DiscardHandler), // the library logs whole URLs, credentials included
	}
	raw, err := h3.NewRawServerConn(q)
	if err != nil {
		_ = q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeInternalError), "") // never fails
		return nil, fmt.Errorf("start HTTP/3: %w", err)
	}
	a.demux = newDemux(q, a.http.serve, raw.HandleRequestStream)
	a.demux.start()
	return a.await(ctx)
}

// acceptor waits for the CONNECT request of one connection.
type acceptor struct {
	q       *quic.Conn
	cfg     ServerConfig
	http    *peerStreams
	demux   *demux
	claimed atomic.Bool // by the first acceptable request
}

func (a *acceptor) await(ctx context.Context) (*Conn, error) {
	select {
	case <-a.demux.ready:
		return a.demux.session, nil
	case <-a.q.Context().Done():
		a.demux.wait()
		return nil, connectionEnd(context.Cause(a.q.Context()))
	case <-ctx.Done():
		_ = a.q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "no session") // never fails
		a.demux.wait()
		return nil, fmt.Errorf("wait for a WebTransport session: %w", context.Cause(ctx))
	}
}

// ServeHTTP takes the CONNECT request that opens the session.
func (a *acceptor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// HTTP/3 puts :protocol there.
	if r.Method != http.MethodConnect || (r.Proto != connectProtocol && r.Proto != connectProtocolNew) {
		a.cfg.Handler.ServeHTTP(w, r)
		return
	}
	select { // its SETTINGS may come after its request
	case <-a.http.known:
	case <-r.Context().Done():
		return
	}
	if !a.claimed.CompareAndSwap(false, true) {
		// Several sessions on a connection need WebTransport flow control, which we do not offer. The library writes
		// a header before it hands over the stream; it may arrive before the reset, and must not say yes.
		w.WriteHeader(http.StatusTooManyRequests)
		str := w.(http3.HTTPStreamer).HTTPStream()
		str.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestRejected))
		str.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestRejected))
		return
	}
	protocol := choose(r.Header[protocolsHeader], a.cfg.Protocols)
	if protocol != "" {
		value, err := httpsfv.Marshal(httpsfv.NewItem(protocol))
		if err != nil {
			protocol = ""
		} else {
			w.Header().Set(protocolHeader, value)
		}
	}
	w.WriteHeader(http.StatusOK)
	newConn(a.q, w.(http3.HTTPStreamer).HTTPStream(), a.demux, options{
		datagrams: a.http.datagrams,
		protocol:  protocol,
		url:       requestURL(r),
	})
}

// choose returns the first protocol of the client's list that is supported, "" if there is none or the
// list cannot be read.
func choose(header, supported []string) string {
	list, err := httpsfv.UnmarshalList(header)
	if err != nil {
		return ""
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		if name, ok := protocolName(item); ok && slices.Contains(supported, name) {
			return name
		}
	}
	return ""
}

// protocolName reads a string, or a token, which is what drafts up to 13 had.
func protocolName(item httpsfv.Item) (string, bool) {
	switch v := item.Value.(type) {
	case string:
		return v, true
	case httpsfv.Token:
		return string(v), true
	}
	return "", false
}

// requestURL is what the client dialed: the request has the path only.
func requestURL(r *http.Request) *url.URL {
	u := *r.URL
	u.Scheme, u.Host = "https", r.Host
	return &u
}
