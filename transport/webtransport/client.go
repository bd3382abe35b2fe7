package webtransport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/dunglas/httpsfv"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// ClientConfig is what Connect needs to know of the client.
type ClientConfig struct {
	Protocols []string // to offer, preferred first
	// Pinned says that the server was verified by the fingerprint of its certificate.
	Pinned bool
}

// Connect opens a session for u on a connection that negotiated h3. It owns the connection: if it fails, the
// connection is closed. The error is a *StatusError if the server refused the session.
func Connect(ctx context.Context, q *quic.Conn, u *url.URL, cfg ClientConfig) (*Conn, error) {
	transport := &http3.Transport{
		EnableDatagrams:        true,
		AdditionalSettings:     settings(true),
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
	h3 := transport.NewRawClientConn(q)
	d := newDemux(q, h3.HandleUnidirectionalStream, refuseStream)
	d.start()
	conn, err := connect(ctx, q, h3, d, u, cfg)
	if err != nil {
		if end := context.Cause(q.Context()); end != nil {
			err = connectionEnd(end)
		}
		_ = q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // never fails
		d.wait()
		return nil, err
	}
	return conn, nil
}

// refuseStream drops a bidirectional stream of the server that is none of a session's.
func refuseStream(str *quic.Stream) {
	str.CancelRead(quic.StreamErrorCode(http3.ErrCodeStreamCreationError))
	str.CancelWrite(quic.StreamErrorCode(http3.ErrCodeStreamCreationError))
}

func connect(
	ctx context.Context, q *quic.Conn, h3 *http3.RawClientConn, d *demux, u *url.URL, cfg ClientConfig,
) (*Conn, error) {
	select {
	case <-h3.ReceivedSettings():
	case <-q.Context().Done():
		return nil, context.Cause(q.Context())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !h3.Settings().EnableExtendedConnect {
		return nil, ErrNotSupported
	}
	req, err := connectRequest(u, cfg.Protocols)
	if err != nil {
		return nil, err
	}
	str, err := h3.OpenRequestStream(ctx)
	if err != nil {
		return nil, err
	}
	res, err := exchange(ctx, str, req)
	if err != nil {
		return nil, err
	}
	protocol, err := chosen(res.Header[protocolHeader], cfg.Protocols)
	if err != nil {
		return nil, err
	}
	return newConn(q, str, d, options{
		dialed: true, pinned: cfg.Pinned,
		datagrams: h3.Settings().EnableDatagrams,
		protocol:  protocol,
		url:       req.URL,
		receive:   str.ReceiveDatagram,
	}), nil
}

func connectRequest(u *url.URL, protocols []string) (*http.Request, error) {
	req := &http.Request{
		Method: http.MethodConnect,
		Proto:  connectProtocol,
		Host:   u.Host,
		URL:    &url.URL{Scheme: "https", Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery},
		Header: http.Header{},
	}
	if len(protocols) == 0 {
		return req, nil
	}
	list := make(httpsfv.List, len(protocols))
	for i, p := range protocols {
		list[i] = httpsfv.NewItem(p)
	}
	value, err := httpsfv.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("offer protocols: %w", err)
	}
	req.Header.Set(protocolsHeader, value)
	return req, nil
}

// exchange sends the request and reads the response; ctx aborts it.
func exchange(ctx context.Context, str *http3.RequestStream, req *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(ctx, func() {
		str.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
		str.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	})
	res, err := roundTrip(str, req)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return res, err
}

func roundTrip(str *http3.RequestStream, req *http.Request) (*http.Response, error) {
	sendErr := str.SendRequestHeader(req)
	if _, stopped := errors.AsType[*http3.Error](sendErr); sendErr != nil && !stopped {
		return nil, sendErr
	}
	// A server that stopped reading has answered before.
	res, err := str.ReadResponse()
	if err != nil {
		return nil, cmp.Or(sendErr, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, &StatusError{Status: res.StatusCode}
	}
	return res, nil
}

var errProtocolHeader = errors.New("unreadable protocol in the server's answer")

// chosen returns the sub-protocol that the server chose, "" if none.
func chosen(header, offered []string) (string, error) {
	if len(header) == 0 {
		return "", nil
	}
	item, err := httpsfv.UnmarshalItem(header)
	if err != nil {
		return "", errProtocolHeader
	}
	name, ok := protocolName(item)
	if !ok {
		return "", errProtocolHeader
	}
	if !slices.Contains(offered, name) {
		return "", ErrProtocol
	}
	return name, nil
}
