package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/internal/tool"
)

// sessionFlags choose sessions of a running relay; all given ones must match.
type sessionFlags struct {
	InternalURL string `name:"internal-url" help:"Address of the relay's internal endpoints." default:"http://127.0.0.1:4444" placeholder:"URL"`

	ID             string `name:"id" help:"Session id, as the auth server is told." placeholder:"ID"`
	Node           string `help:"Node of the relay." placeholder:"TEXT"`
	Transport      string `help:"Transport, such as quic." placeholder:"TEXT"`
	Remote         string `help:"Address or network of the client, such as 192.0.2.0/24." placeholder:"CIDR"`
	Local          string `help:"Address of the relay that the client dialed." placeholder:"HOST:PORT"`
	ServerName     string `help:"Host name that the client dialed." placeholder:"HOST"`
	ALPN           string `name:"alpn" help:"Negotiated protocol." placeholder:"TEXT"`
	Path           string `help:"Pattern of the dialed path, such as 'demo/**'." placeholder:"PATTERN"`
	Role           string `help:"Declared role, publisher or subscriber." placeholder:"ROLE"`
	TLSName        string `name:"tls-name" help:"Name in the client certificate." placeholder:"TEXT"`
	TLSFingerprint string `name:"tls-fingerprint" help:"SHA-256 of the client certificate." placeholder:"HEX"`
	TLSIssuer      string `name:"tls-issuer" help:"Issuer of the client certificate." placeholder:"DN"`
}

// query writes the filters as the relay reads them.
func (f *sessionFlags) query() string {
	q := make(url.Values)
	for name, value := range map[string]string{
		"id": f.ID, "node": f.Node, "transport": f.Transport, "remote": f.Remote, "local": f.Local, "server_name": f.ServerName,
		"alpn": f.ALPN, "path": f.Path, "role": f.Role,
		"tls.name": f.TLSName, "tls.fingerprint": f.TLSFingerprint, "tls.issuer": f.TLSIssuer,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// ask sends a request to the relay and prints what it answers.
func (f *sessionFlags) ask(s *tool.Streams, method, path string) error {
	ctx, stop := interruptible()
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	target := strings.TrimSuffix(f.InternalURL, "/") + path
	if q := f.query(); q != "" {
		target += "?" + q
	}
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s: %.500s", resp.Status, text)
	}
	_, err = fmt.Fprintln(s.Out, text)
	return err
}

// authSessions lists sessions.
type authSessions struct{ sessionFlags }

// Run implements the subcommand.
func (c *authSessions) Run(s *tool.Streams) error { return c.ask(s, http.MethodGet, "/sessions") }

// authRevalidate pushes a question.
type authRevalidate struct{ sessionFlags }

// Help is shown by --help.
func (authRevalidate) Help() string {
	return "Without a filter it is about all sessions. The relay asks at once; what the auth server answers counts, nothing else."
}

// Run implements the subcommand.
func (c *authRevalidate) Run(s *tool.Streams) error {
	return c.ask(s, http.MethodPost, "/sessions/revalidate")
}
