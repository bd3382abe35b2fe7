package relay

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/internal/overload"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// maxHeader bounds the header of an HTTP request, in bytes.
const maxHeader = 32 << 10

// web is the TCP side: the public endpoints and those for operators.
type web struct {
	relay   *Relay
	certs   *tlsconf.Store // of HTTPS; nil = none
	servers []*webServer
	wg      sync.WaitGroup
	once    sync.Once

	mu       sync.Mutex
	closed   bool           // nobody is upgraded any more
	upgrades sync.WaitGroup // requests that become sessions
}

// webServer is one TCP listener.
type webServer struct {
	server *http.Server
	ln     *countedListener
}

// newWeb binds the TCP listeners.
func newWeb(r *Relay) (*web, error) {
	w := &web{relay: r}
	public := admin.Public(admin.PublicConfig{Admit: admitter{r}, Fingerprint: r.certs.Fingerprint, Logger: r.log})
	if !r.cfg.Web.NoWebSocket {
		public = r.webSockets(public)
	}
	err := errors.Join(
		w.listen("web", "http", r.cfg.Web.HTTP, public, nil),
		w.https(public),
		w.listen("internal", "internal", r.cfg.Internal, admin.Internal(r.internal()), nil),
	)
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *web) https(h http.Handler) (err error) {
	conf := w.relay.cfg.Web
	if conf.HTTPS == "" {
		return nil
	}
	if w.certs, err = tlsconf.Open(conf.Certificates); err != nil {
		return fmt.Errorf("certificates of web.https: %w", err)
	}
	return w.listen("web", "https", conf.HTTPS, h, w.certs.Server(conf.ClientRoots))
}

// listen binds one address; an empty one means no listener.
func (w *web) listen(name, kind, address string, h http.Handler, conf *tls.Config) error {
	if address == "" {
		return nil
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%s listener: %w", kind, err)
	}
	log := w.relay.log
	log.Info("listening", "kind", kind, "address", ln.Addr().String())
	if conf != nil {
		conf.NextProtos = []string{"h2", "http/1.1"}
	}
	w.servers = append(w.servers, &webServer{
		ln: &countedListener{
			Listener: ln, name: name, log: log.With("kind", kind), failures: make(map[string]uint64),
			files: w.files(name), plain: conf == nil,
		},
		server: &http.Server{
			Handler: h, TLSConfig: conf, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: w.relay.cfg.Handshake,
			IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	})
	return nil
}

// files keeps descriptors from the public; operators may have the last.
func (w *web) files(name string) *overload.Files {
	if name == "internal" || w.relay.cfg.fileLimit == 0 {
		return nil
	}
	return overload.NewFiles(w.relay.cfg.fileLimit)
}

// refused counts connections that were closed for want of descriptors.
func (w *web) refused() (n uint64) {
	for _, s := range w.servers {
		n += s.ln.refused.Load()
	}
	return n
}

// start serves what was bound.
func (w *web) start() {
	for _, s := range w.servers {
		w.wg.Go(func() {
			if s.server.TLSConfig != nil {
				_ = s.server.ServeTLS(s.ln, "", "") // ends when the server closes
			} else {
				_ = s.server.Serve(s.ln)
			}
		})
	}
}

// close ends the listeners and every request.
func (w *web) close() {
	w.once.Do(func() {
		for _, s := range w.servers {
			_ = s.server.Close()
			_ = s.ln.Close()
		}
		w.wg.Wait()
		if w.certs != nil {
			_ = w.certs.Close()
		}
	})
}

// enter registers a request that is to become a session; the caller leaves w.upgrades. It reports false after settle.
func (w *web) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.upgrades.Add(1)
	}
	return !w.closed
}

// settle waits for the requests that were to become sessions.
func (w *web) settle() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.upgrades.Wait()
}

// addr is where a listener listens, for tests and log lines; empty if there is none.
func (w *web) addr(name string) string {
	for _, s := range w.servers {
		if s.ln.name == name {
			return s.ln.Addr().String()
		}
	}
	return ""
}

// metrics tells how accepting goes.
func (w *web) metrics() []admin.AcceptMetrics {
	byName := make(map[string]admin.AcceptMetrics)
	var names []string
	for _, s := range w.servers {
		m, known := byName[s.ln.name]
		if !known {
			names = append(names, s.ln.name)
			m = admin.AcceptMetrics{Listener: s.ln.name, Failures: make(map[string]uint64)}
		}
		s.ln.addTo(&m)
		byName[s.ln.name] = m
	}
	out := make([]admin.AcceptMetrics, 0, len(names))
	for _, n := range names {
		out = append(out, byName[n])
	}
	return out
}

// internal is what the operators' pages read.
func (r *Relay) internal() admin.InternalConfig {
	return admin.InternalConfig{
		State:      state{r},
		Revalidate: r.leases.Revalidate,
		PathMatcher: func(pattern string) (func(string) bool, error) {
			p, err := paths.Parse(pattern)
			if err != nil {
				return nil, err
			}
			return p.Match, nil
		},
		Overview: r.overview,
		Pages: map[string]func() any{
			"/cluster": func() any { return r.clusterPage() },
			"/routes":  func() any { return r.origin.RouteTable() },
			"/tracks":  func() any { return map[string]any{"tracks": r.origin.Tracks()} },
		},
	}
}

// countedListener counts what goes wrong when accepting, and logs it once per failure streak: net/http itself goes on
// trying, with pauses of up to a second.
type countedListener struct {
	net.Listener
	name string
	log  *slog.Logger
	// files, if not nil, keeps some descriptors; plain says that a refusal can be told in HTTP.
	files   *overload.Files
	plain   bool
	refused atomic.Uint64

	failing atomic.Int64 // since when, unix nanoseconds; 0 = it works

	mu       sync.Mutex
	failures map[string]uint64
}

// errDescriptors says that the last descriptors are kept for the relay itself.
var errDescriptors = fmt.Errorf("the last descriptors are kept: %w", syscall.EMFILE)

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err != nil:
			if !errors.Is(err, net.ErrClosed) {
				l.fail(err)
			}
			return nil, err
		case l.files.Refuse(descriptor(c)):
			l.refuse(c)
			continue
		}
		if since := l.failing.Swap(0); since != 0 {
			l.log.Info("accepting again", "after", time.Since(time.Unix(0, since)).Round(time.Millisecond))
		}
		return c, nil
	}
}

func (l *countedListener) fail(err error) {
	if l.failing.CompareAndSwap(0, time.Now().UnixNano()) {
		l.log.Warn("no TCP connection can be accepted", "err", err)
	}
	l.mu.Lock()
	l.failures[acceptClass(err)]++
	l.mu.Unlock()
}

// refuse closes a connection at once, so that the client need not wait in the queue of the socket.
func (l *countedListener) refuse(c net.Conn) {
	l.refused.Add(1)
	l.fail(errDescriptors)
	if l.plain { // the first bytes on a new connection wait for nobody
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = c.Write([]byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	}
	_ = c.Close()
}

// descriptor is that of a connection; 0 if it has none.
func descriptor(c net.Conn) (fd uint64) {
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(n uintptr) { fd = uint64(n) })
		}
	}
	return fd
}

func acceptClass(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return "exhausted"
	case errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.ECONNRESET):
		return "connection"
	default:
		return "unknown"
	}
}

func (l *countedListener) addTo(m *admin.AcceptMetrics) {
	l.mu.Lock()
	for class, n := range l.failures {
		m.Failures[class] += n
	}
	l.mu.Unlock()
	if since := l.failing.Load(); since != 0 {
		m.Stalled = max(m.Stalled, time.Since(time.Unix(0, since)).Seconds())
	}
}
