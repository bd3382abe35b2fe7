package endpoint

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// plainHTTP is a client for one request to a development server on the same network.
func plainHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			DisableKeepAlives:      true,
			ResponseHeaderTimeout:  10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchPin asks a development server for the fingerprint of its certificate. host may have a port.
func fetchPin(ctx context.Context, client *http.Client, host string) (pin tlsconf.Fingerprint, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/certificate.sha256", nil)
	if err != nil {
		return pin, fmt.Errorf("certificate fingerprint: %w", err)
	}
	res, err := client.Do(req)
	if err != nil {
		return pin, fmt.Errorf("certificate fingerprint: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return pin, fmt.Errorf("certificate fingerprint: HTTP status %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	if err != nil {
		return pin, fmt.Errorf("certificate fingerprint: %w", err)
	}
	return tlsconf.ParseFingerprint(strings.TrimSpace(string(body)))
}
