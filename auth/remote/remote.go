// Package remote asks an auth server over HTTP: one POST of JSON per event (auth 5.1).
package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/moqmesh/moqmesh/auth"
)

// Limits of an answer.
const (
	maxAnswer = 256 << 10 // bytes of a grant
	maxReason = 300       // bytes of what a refusal says
	// maxIdle is how many connections to the server are kept.
	maxIdle = 64
	// handshakeTimeout bounds the beginning of one.
	handshakeTimeout = 5 * time.Second
)

// ErrURL says that an address is not one of an auth server. It does not quote the address, which may hold a credential.
var ErrURL = errors.New("want https://…, unix:///path, or http:// to a loopback address")

// Config is what New takes. Only URL is required.
type Config struct {
	// URL is https://…, http://… to a loopback address, or unix:///path, where requests go to "/".
	URL string
	// TLS says whom to trust and what to present, anew for each connection; nil trusts the system's roots. Unused without
	// https.
	TLS    func() *tls.Config
	Logger *slog.Logger // nil discards
}

// Client asks an auth server.
type Client struct {
	target string
	own    []string // credentials in the address
	http   *http.Client
	log    *slog.Logger
}

var _ auth.Leaser = (*Client)(nil)

// New returns a client that has not asked anything yet. It fails with ErrURL.
func New(cfg Config) (*Client, error) {
	u, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: handshakeTimeout, MaxResponseHeaderBytes: 32 << 10,
	}
	if cfg.TLS != nil {
		transport.DialTLSContext = dialTLS(cfg.TLS)
	}
	target := u.String()
	if u.Scheme == "unix" {
		path := u.Path
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
		target = "http://localhost/"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	password, _ := u.User.Password()
	own := append(credentials(u.RawQuery), u.User.Username(), password)
	return &Client{target: target, own: own, log: cfg.Logger, http: &http.Client{
		Transport: transport,
		// A redirect is no answer: the question holds credentials, which go where the operator said.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// dialTLS opens connections with the settings of that moment.
func dialTLS(settings func() *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		conf := settings().Clone()
		conf.NextProtos = []string{"h2", "http/1.1"}
		d := tls.Dialer{Config: conf}
		return d.DialContext(ctx, network, addr)
	}
}

// Check reports whether New would take a URL.
func Check(address string) error {
	_, err := parse(address)
	return err
}

func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, ErrURL
	}
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.Scheme == "https" && u.Host != "":
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
	case u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()):
	default:
		return nil, ErrURL
	}
	return u, nil
}

// Close drops the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Authorize implements auth.Authorizer.
func (c *Client) Authorize(ctx context.Context, r auth.Request) (auth.Grant, error) {
	status, body, err := c.post(ctx, auth.EncodeRequest(r, nil), true)
	switch {
	case err != nil:
		return auth.Grant{}, c.withoutSecrets(auth.Unavailable("auth server: %v", err), r)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return auth.Grant{}, &auth.Error{Status: status, Reason: "by the auth server" + c.said(body, r)}
	case status < 200 || status > 299:
		return auth.Grant{}, auth.Unavailable("auth server: status %d", status)
	}
	g, err := auth.DecodeGrant(body, r.Path)
	if err != nil {
		return auth.Grant{}, c.withoutSecrets(err, r)
	}
	return g.For(r.Role)
}

// End implements auth.Leaser.
func (c *Client) End(ctx context.Context, r auth.Request, e auth.End) {
	r.Event = auth.EventEnd
	status, _, err := c.post(ctx, auth.EncodeRequest(r, &e), false)
	if err == nil && status > 299 {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		if c.repeats(err.Error(), r) {
			err = errRepeats
		}
		c.log.Debug("the end of a session could not be reported", "id", r.ID, "error", err)
	}
}

// post puts one question. repeatable says that it may be sent again, should a connection turn out to be dead.
func (c *Client) post(ctx context.Context, question []byte, repeatable bool) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target, bytes.NewReader(question))
	if err != nil {
		return 0, nil, ErrURL
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if repeatable {
		req.Header["Idempotency-Key"] = nil // tells net/http, and is not sent
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, withoutURL(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, withoutURL(err)
	case len(body) > maxAnswer:
		return 0, nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return resp.StatusCode, body, nil
}

// withoutURL drops the URL from an error of the client: it may hold a credential.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// said is the reason of a refusal as far as it fits into a log line. Should the server repeat a credential, it is left
// out.
func (c *Client) said(body []byte, r auth.Request) string {
	text := string(body[:min(len(body), maxReason)])
	text = strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return ' '
		}
		return char
	}, text)
	if c.repeats(text, r) || c.repeats(string(body), r) {
		return ""
	}
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}

// errRepeats stands for what cannot be quoted.
var errRepeats = errors.New("the answer repeats a credential")

// withoutSecrets leaves out what is wrong with an answer if that repeats a credential.
func (c *Client) withoutSecrets(err error, r auth.Request) error {
	if e, ok := errors.AsType[*auth.Error](err); ok && c.repeats(e.Reason, r) {
		return &auth.Error{Status: e.Status, Invalid: e.Invalid, Reason: errRepeats.Error()}
	}
	return err
}

// repeats reports whether a text has a credential in it, of a request or of the address, even in part: what is quoted may
// be cut.
func (c *Client) repeats(text string, r auth.Request) bool {
	found := func(s string) bool { return len(s) >= 4 && strings.Contains(text, s[:min(len(s), 24)]) }
	return slices.ContainsFunc(c.own, found) || slices.ContainsFunc(credentials(r.Query), found)
}

// credentials are a query and the values in it.
func credentials(query string) []string {
	out := []string{query}
	for part := range strings.SplitSeq(query, "&") {
		if _, value, ok := strings.Cut(part, "="); ok {
			out = append(out, value)
		}
	}
	return out
}
