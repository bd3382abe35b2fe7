package lan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// checkEvery is how often interfaces are looked at, and what has failed is tried again (L14, L15).
const checkEvery = 5 * time.Second

// DefaultApp is the application that relays advertise under.
const DefaultApp = "default"

// Errors of Start.
var (
	ErrNoIdentity = errors.New("LAN discovery needs a fingerprint or a node to advertise") // L1
	ErrNode       = fmt.Errorf("the node is not a URL of at most %d bytes without user and fragment, or asks for more than a cost", maxNode)
)

// Config of a Discovery. Port and one of Fingerprint and Node are required.
type Config struct {
	// App is whom we mesh with; empty = DefaultApp. See CheckApp.
	App string
	// Secret closes the group to all who do not have it; nil = open.
	Secret *Secret
	// Port is that of our QUIC listener, and Bind the address it is bound to: unspecified for all, of both families if it
	// is that of IPv6.
	Port uint16
	Bind netip.Addr
	// Fingerprint is the SHA-256 of our certificate in lower-case hex, for others to pin; empty = they validate it.
	Fingerprint string
	// Node is our URL, with ?cost= at most; empty = others dial our addresses.
	Node string

	Logger *slog.Logger // nil discards

	network network        // nil = that of the system
	random  io.Reader      // nil = crypto/rand
	chance  func() float64 // nil = math/rand/v2
}

func (c Config) normal() (Config, error) {
	if c.App == "" {
		c.App = DefaultApp
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.network == nil {
		c.network = system{}
	}
	if c.random == nil {
		c.random = rand.Reader
	}
	if c.chance == nil {
		c.chance = mathrand.Float64
	}
	if !c.Bind.IsValid() {
		c.Bind = netip.IPv6Unspecified()
	}
	if err := CheckApp(c.App); err != nil {
		return c, err
	}
	if c.Fingerprint == "" && c.Node == "" {
		return c, ErrNoIdentity
	}
	return c, CheckNode(c.Node)
}

// CheckNode reports what is wrong with a node to advertise; an empty one is none.
func CheckNode(node string) error {
	if node == "" {
		return nil
	}
	r := record{node: node}
	address, cost, err := r.nodeURL()
	if err == nil && cost != nil {
		address += fmt.Sprintf("?cost=%d", *cost)
	}
	if err != nil || address != node {
		return ErrNode
	}
	return nil
}

// Discovery advertises us and looks for others until it is closed. Its methods may be called concurrently.
type Discovery struct {
	cfg   Config
	group group
	log   *slog.Logger

	packets chan packet
	broken  chan *netSocket // could not be read
	poke    chan struct{}   // the fingerprint has changed
	stop    chan struct{}
	done    chan struct{}
	once    sync.Once
	readers sync.WaitGroup
	ready   chan struct{}

	mu          sync.Mutex
	fingerprint string // as wanted
	credential  string // that opens our listener
	peers       []Peer
	news        chan struct{} // closed when peers change

	// Of the owner.
	self      record
	links     []*netLink
	directory *directory
	settle    time.Time // when to make the list anew; zero = nothing has changed
	nextCheck time.Time
	said      causes
	announces bool // some interface does
	began     time.Time
}

// Start begins to advertise and to look. The state of the network is no reason to fail: what cannot be done now is
// tried again every five seconds. The caller must Close.
func Start(cfg Config) (*Discovery, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	d := &Discovery{
		cfg: cfg, group: group{app: cfg.App, secret: cfg.Secret}, log: cfg.Logger, fingerprint: cfg.Fingerprint,
		packets: make(chan packet, 64), broken: make(chan *netSocket), poke: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), ready: make(chan struct{}), news: make(chan struct{}),
		said: make(causes),
	}
	if err := d.identify(); err != nil {
		return nil, err
	}
	go d.run()
	return d, nil
}

// identify draws a new name and nonce.
func (d *Discovery) identify() (err error) {
	d.self = record{app: d.cfg.App, port: d.cfg.Port, node: d.cfg.Node}
	if d.self.instance, err = random(d.cfg.random, 8); err != nil {
		return err
	}
	if d.self.nonce, err = random(d.cfg.random, 16); err != nil {
		return err
	}
	d.seal()
	d.directory = newDirectory(d.group, d.self)
	return nil
}

// seal completes our record with the fingerprint, the proof and the credential that goes with them.
func (d *Discovery) seal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.self.fingerprint = d.fingerprint
	d.group.seal(&d.self)
	d.credential = d.group.credential(&d.self)
}

// Ready is closed when an interface has announced us (L14).
func (d *Discovery) Ready() <-chan struct{} { return d.ready }

// Admits reports whether a credential is the one that our record gives to peers (L12). It takes the same time for
// every wrong one of the right length.
func (d *Discovery) Admits(credential string) bool {
	d.mu.Lock()
	own := d.credential
	d.mu.Unlock()
	return equal(credential, own)
}

// SetFingerprint advertises another certificate from now on.
func (d *Discovery) SetFingerprint(fingerprint string) {
	d.mu.Lock()
	d.fingerprint = fingerprint
	d.mu.Unlock()
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// Next waits until the peers to dial are others than known, which is what it returned last, and returns them all, by
// ID. The error is that of ctx, or net.ErrClosed.
func (d *Discovery) Next(ctx context.Context, known []Peer) ([]Peer, error) {
	for {
		d.mu.Lock()
		peers, news := d.peers, d.news
		d.mu.Unlock()
		if !slices.EqualFunc(peers, known, func(a, b Peer) bool { return a.same(&b) }) {
			return slices.Clone(peers), nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.done:
			return nil, net.ErrClosed
		}
	}
}

// Close takes our record back, and returns when the last goroutine has ended.
func (d *Discovery) Close() error {
	d.once.Do(func() { close(d.stop) })
	<-d.done
	return nil
}

// causes remembers what was logged, so that each cause is logged once until it is gone.
type causes map[string]string

// new reports whether this is news about a subject.
func (c causes) new(subject string, err error) bool {
	if text := err.Error(); c[subject] != text {
		c[subject] = text
		return true
	}
	return false
}

// forget drops a subject and all below it.
func (c causes) forget(subject string) {
	for s := range c {
		if s == subject || strings.HasPrefix(s, subject+" ") {
			delete(c, s)
		}
	}
}
