package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// serve accepts sessions on l and hands them out.
func serve(t *testing.T, l listener) <-chan *lite.Session {
	sessions := make(chan *lite.Session)
	go func() {
		defer close(sessions)
		for {
			conn, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			s, err := lite.Accept(t.Context(), conn, lite.Config{})
			if err != nil {
				continue
			}
			select {
			case sessions <- s:
			case <-t.Context().Done():
			}
		}
	}()
	return sessions
}

// TestDialSetup looks at what a server learns of the client, on both carriers.
func TestDialSetup(t *testing.T) {
	l := listen(t, nil)
	sessions := serve(t, l)
	price := uint64(7)
	for _, scheme := range []string{"moqt", "https"} {
		cfg := client.Config{Role: client.RoleSubscriber, Hop: 99, Price: &price}
		cfg.TLS.Insecure = true
		c, err := client.Dial(t.Context(), fmt.Sprintf("%s://%s/root/a%%20b?jwt=secret", scheme, l.Addr()), cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := (<-sessions).Peer()
		want := lite.Peer{Path: "/root/a%20b", Query: "jwt=secret", Role: client.RoleSubscriber, Hop: 99, Price: &price}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", scheme, d)
		}
		if c.Version() != message.Lite06 || !c.HasCost() {
			t.Errorf("%s: version %v", scheme, c.Version())
		}
		c.Close()
	}
}

// TestDialDevelopment uses an http URL: the certificate is the one whose hash the server tells.
func TestDialDevelopment(t *testing.T) {
	l := listen(t, nil)
	sessions := serve(t, l)
	web, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		t.Skipf("the port is taken on TCP: %v", err)
	}
	var pin atomic.Value
	pin.Store(l.pin.String())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/certificate.sha256" {
			_, _ = io.WriteString(w, pin.Load().(string))
		}
	})}
	go func() { _ = server.Serve(web) }()
	defer func() { _ = server.Close() }()
	c, err := client.Dial(t.Context(), fmt.Sprintf("http://%s/demo", l.Addr()), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := (<-sessions).Peer(); got.Path != "/demo" {
		t.Errorf("path %q", got.Path)
	}
	pin.Store(strings.Repeat("00", 32))
	if c, err := client.Dial(t.Context(), fmt.Sprintf("http://%s/", l.Addr()), client.Config{}); err == nil {
		c.Close()
		t.Error("a certificate with another hash is accepted")
	}
}

// TestDialFails tries what cannot work: an error in time, no word of the URL's path and query, nothing left running.
func TestDialFails(t *testing.T) {
	l := listen(t, nil)
	dead := "moqt://127.0.0.1:1"
	insecure := client.Config{DialTimeout: 300 * time.Millisecond}
	insecure.TLS.Insecure = true
	only01 := insecure
	only01.Versions = []client.Version{message.Lite03}
	narrow := listen(t, []client.Version{message.Lite06})
	for _, tc := range []struct {
		url  string
		cfg  client.Config
		want error
	}{
		{"::", insecure, client.ErrURL},
		{"relay.example:4443/SECRET", insecure, client.ErrURL},
		{"https:///SECRET", insecure, client.ErrURL},
		{"https://:4443/SECRET", insecure, client.ErrURL},
		{"https://h:SECRET/", insecure, client.ErrURL},
		{"ftp://h/SECRET", insecure, endpoint.ErrScheme},
		{dead + "/SECRET?jwt=SECRET", insecure, nil},
		{"https" + strings.TrimPrefix(dead, "moqt") + "/SECRET?jwt=SECRET", insecure, nil},
		{fmt.Sprintf("https://%s/SECRET", l.Addr()), client.Config{DialTimeout: time.Second}, nil}, // unknown CA
		{fmt.Sprintf("moqt://%s/SECRET", narrow.Addr()), only01, nil},                              // no version in common
		{fmt.Sprintf("http://%s/SECRET", l.Addr()), client.Config{DialTimeout: time.Second}, nil},  // nobody on TCP
	} {
		begin := time.Now()
		c, err := client.Dial(t.Context(), tc.url, tc.cfg)
		if err == nil {
			c.Close()
			t.Errorf("%s is dialed", tc.url)
			continue
		}
		if tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.url, err, tc.want)
		}
		if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: the error tells: %v", tc.url, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v", tc.url, took)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := client.Dial(ctx, dead, client.Config{}); err == nil {
		t.Error("a dial outlives its context")
	}
}

// TestSharedDialer makes clients on one socket; closing one leaves the others alone.
func TestSharedDialer(t *testing.T) {
	l := listen(t, nil)
	sessions := serve(t, l)
	cfg := client.Config{}
	cfg.TLS.Insecure = true
	var err error
	if cfg.Dialer, err = client.NewDialer(cfg); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cfg.Dialer.Close() }()
	var clients []*client.Client
	for range 3 {
		c, err := client.Dial(t.Context(), fmt.Sprintf("moqt://%s/", l.Addr()), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		<-sessions
		clients = append(clients, c)
	}
	clients[0].Close()
	select {
	case <-clients[1].Done():
		t.Errorf("another client ended: %v", clients[1].Err())
	case <-time.After(50 * time.Millisecond):
	}
}

func TestParseVersion(t *testing.T) {
	for _, name := range []string{"lite-05", "moq-lite-05", "05"} {
		if v, err := client.ParseVersion(name); err != nil || v != message.Lite05 {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	for _, name := range []string{"", "5", "lite-00", "lite-07", "moqt-14", "lite-lite-05x"} {
		if v, err := client.ParseVersion(name); err == nil {
			t.Errorf("%q is %v", name, v)
		}
	}
}
