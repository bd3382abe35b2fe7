package endpoint_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/qmux"
)

// askWeb sends a request for a WebSocket by hand, and returns the status.
func askWeb(t *testing.T, l *endpoint.Listener, allow int, change func(*http.Request)) (status int, err error) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://relay.example/room?jwt=x", nil)
	r.RemoteAddr = "192.0.2.1:9"
	for k, v := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "qmux-01." + tokens[0],
	} {
		r.Header.Set(k, v)
	}
	if change != nil {
		change(r)
	}
	w := &answer{header: http.Header{}}
	_, err = l.Upgrade(w, r, func(_ context.Context, info transport.Info) int {
		if info.Kind != transport.KindWebSocket || info.URL.RawQuery != "jwt=x" {
			t.Errorf("asked about %+v", info)
		}
		return allow
	})
	return w.status, err
}

// answer records the status of an answer; it cannot be hijacked.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }
func (a *answer) WriteHeader(status int)      { a.status = status }

// Who is not let in learns so from the status of the answer, and leaves nothing behind that counts.
func TestUpgradeRefused(t *testing.T) {
	w := &world{scheme: "ws"}
	s := certificates(t)
	late := false
	l := w.listen(t, s, func(c *endpoint.Config) {
		c.MaxPerAddr = 1
		c.Pace = func(context.Context) error {
			if late {
				return errTest
			}
			return nil
		}
	})
	for name, test := range map[string]struct {
		allow  int
		change func(*http.Request)
		want   int
	}{
		"unauthorized": {http.StatusUnauthorized, nil, http.StatusUnauthorized},
		"forbidden":    {http.StatusForbidden, nil, http.StatusForbidden},
		"outage":       {http.StatusBadGateway, nil, http.StatusBadGateway},
		"no protocol":  {0, func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", "chat") }, http.StatusBadRequest},
		"no host":      {0, func(r *http.Request) { r.Host = "" }, http.StatusBadRequest},
		"overload":     {0, nil, http.StatusServiceUnavailable},
		"bad key":      {0, func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "x") }, http.StatusBadRequest},
	} {
		late = name == "overload"
		status, err := askWeb(t, l, test.allow, test.change)
		for end := time.Now().Add(5 * time.Second); status == http.StatusTooManyRequests && time.Now().Before(end); {
			status, err = askWeb(t, l, test.allow, test.change) // the one before leaves a moment after its answer
		}
		if status != test.want || err == nil {
			t.Errorf("%s: status %d, %v", name, status, err)
		}
	}
}

// The limits of the listener hold for WebSockets, too, and the dialer learns the status.
func TestUpgradeLimits(t *testing.T) {
	w := &world{scheme: "ws"}
	s := certificates(t)
	l := w.listen(t, s, func(c *endpoint.Config) {
		c.MaxPerAddr = 1
		c.Exempt = func(netip.Addr) bool { return false }
	})
	d := w.dialer(t, s, nil)
	first, _ := w.connect(t, d, l, w.target(t, l))
	_, err := d.Dial(timeout(t), w.target(t, l))
	var status *qmux.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusTooManyRequests {
		t.Fatalf("beyond the limit: %v", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the query is in %q", err)
	}
	if _, perAddr := l.RefusedBy(); perAddr != 1 {
		t.Errorf("%d refused", perAddr)
	}
	first.Close(0, "")
	for { // the listener's end follows
		if _, err = d.Dial(timeout(t), w.target(t, l)); err == nil {
			break
		}
		if !errors.As(err, &status) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	l.StopAccepting()
	if _, err = d.Dial(timeout(t), w.target(t, l)); !errors.As(err, &status) || status.Status != http.StatusServiceUnavailable {
		t.Fatalf("after StopAccepting: %v", err)
	}
}

// The congestion control can be named, and one that the system does not have does no harm.
func TestCongestion(t *testing.T) {
	w := &world{scheme: "wss"}
	s := certificates(t)
	l := w.listen(t, s, nil)
	for _, name := range []string{"reno", "no-such-thing"} {
		d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.Congestion = name })
		client, server := w.connect(t, d, l, w.target(t, l))
		exchange(t, client, server)
		if applies, err := endpoint.SetCongestion(server, name); !applies || (err == nil) != (name == "reno") {
			t.Errorf("%s: %v, %v", name, applies, err)
		}
	}
	quic := &world{scheme: "moqt"}
	client, _ := quic.pair(t)
	if applies, err := endpoint.SetCongestion(client, "reno"); applies || err != nil {
		t.Errorf("QUIC: %v, %v", applies, err)
	}
}
