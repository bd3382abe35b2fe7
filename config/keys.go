package config

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/internal/backoff"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// sections are the tables of the file in the order of the pages, with what they are about.
var sections = []struct{ name, doc string }{
	{"listen", "The QUIC listener: WebTransport and raw QUIC on one UDP port."},
	{"connect", "How this relay dials its peers."},
	{"quic", "Every QUIC connection, accepted or dialed."},
	{"cluster", "Who this relay is among relays, and which of them it dials."},
	{"auth", "Who may publish and subscribe. Exactly one decides: an auth server (url), public rules, or rules of this relay (local)."},
	{"web", "HTTP for the public: /health, /certificate.sha256, /announced and /fetch."},
	{"limits", "What strangers can make the relay do and hold. /metrics counts what is turned away. A request beyond a limit is refused with the stream code 0x30 (no capacity), a session with 0x1 or, where the machine is full, 567."},
	{"internal", "HTTP for operators: /health, /nodes, /sessions, /metrics and more."},
	{"stats", "Broadcasts about the relay itself: totals by broadcast, as JSON, for dashboards that speak MoQ."},
	{"cache", "What is kept of tracks in memory."},
	{"log", "Logs go to standard error, one line per event. Of refused sessions a hundred at once and ten a second have theirs; the next line says how many had none (`unlogged`)."},
	{"", "Settings without a section; in the file they stand before the first one."},
}

// keys are all settings that exist, in the order of the pages.
var keys = concat(listenKeys, connectKeys, quicKeys, clusterKeys, lanKeys, authKeys, webKeys, limitKeys, otherKeys)

func concat(groups ...[]*key) (out []*key) {
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

var listenKeys = []*key{
	newKey("listen.bind", addressKind, about{
		def: `"[::]:443"`,
		doc: "UDP address to listen on. A host name stands for its first address.",
	}, func(d *draft) *string { return &d.Listen.Bind }),
	newKey("listen.version", versionsKind, about{
		def: allVersions(),
		doc: "MoQ versions to accept.",
	}, func(d *draft) *[]message.Version { return &d.Listen.Versions }),
	newKey("listen.timeout", durationKind, about{
		def: `"10s"`,
		doc: "Time for a whole handshake, MoQ SETUP included, and for the headers of an HTTP request. `0s` = no limit.",
	}, func(d *draft) *time.Duration { return &d.Listen.Timeout }),
	newKey("listen.tls.cert", filesKind, about{
		example: `["/etc/moqmesh/cert.pem"]`,
		doc:     "Certificate chains, PEM. The first is served to clients that name no host, the others by name. Read again when they change.",
	}, func(d *draft) *[]string { return &d.certs }),
	newKey("listen.tls.key", filesKind, about{
		example: `["/etc/moqmesh/key.pem"]`,
		doc:     "Private keys, PEM, one for each certificate and in the same order.",
	}, func(d *draft) *[]string { return &d.certKeys }),
	newKey("listen.tls.generate", listKind, about{
		example: `["localhost"]`,
		needed:  true,
		doc:     "Host names and addresses for a self-signed certificate, made at start and valid for at most 14 days as browsers want it; renewed in time. For development.",
	}, func(d *draft) *[]string { return &d.Listen.TLS.Generate }),
	newKey("listen.tls.root", filesKind, about{
		example: `["/etc/moqmesh/client-ca.pem"]`,
		doc:     "Certificate authorities of clients, PEM. Clients may then present a certificate; what it is good for, `auth.url` or `auth.local` decide.",
	}, func(d *draft) *[]string { return &d.Listen.TLS.Roots }),
}

var connectKeys = []*key{
	newKey("connect.bind", addressKind, about{
		def: `"[::]:0"`,
		doc: "Local UDP address to dial from.",
	}, func(d *draft) *string { return &d.Connect.Bind }),
	newKey("connect.race", durationKind, about{
		def: `"250ms"`,
		doc: "Time between the starts of dials to the addresses of one peer; the first to answer wins.",
	}, func(d *draft) *time.Duration { return &d.Connect.Race }),
	newKey("connect.resolution_delay", durationKind, about{
		def: `"50ms"`,
		doc: "How long IPv4 addresses wait for IPv6 ones that DNS still owes.",
	}, func(d *draft) *time.Duration { return &d.Connect.ResolutionDelay }),
	newKey("connect.timeout", durationKind, about{
		def: `"30s"`,
		doc: "Time for one dial with all its handshakes.",
	}, func(d *draft) *time.Duration { return &d.Connect.Timeout }, positive),
	newKey("connect.version", versionsKind, about{
		def: allVersions(),
		doc: "MoQ versions to offer.",
	}, func(d *draft) *[]message.Version { return &d.Connect.Versions }),
	newKey("connect.backoff.initial", durationKind, about{
		def: `"1s"`,
		doc: "Longest pause before a lost peer is dialed for the first time. Each pause is random between nothing and its longest, which grows up to 30s; a session of 10s starts over.",
	}, func(d *draft) *time.Duration { return &d.Connect.Backoff.Initial }, durationFrom(backoff.Floor)),
	newKey("connect.backoff.multiplier", factorKind, about{
		def: "2.0",
		doc: "Growth of the longest pause per attempt.",
	}, func(d *draft) *float64 { return &d.Connect.Backoff.Multiplier }, atLeast(1.0)),
	newKey("connect.backoff.max", durationKind, about{
		def: `"5s"`,
		doc: "Longest pause of those that end within `timeout` of the loss of the peer. If it is more than 30s, also of those after it.",
	}, func(d *draft) *time.Duration { return &d.Connect.Backoff.Max }, durationFrom(backoff.Floor)),
	newKey("connect.backoff.timeout", durationKind, about{
		def: `"10s"`,
		doc: "How long pauses stay within `max`. A peer that is away for longer is dialed ever more rarely, but for ever. `0s` = not at all.",
	}, func(d *draft) *time.Duration { return &d.Connect.Backoff.Timeout }),
	newKey("connect.goaway.redirect", redirectKind, about{
		def: `"same-host"`,
		doc: "Which addresses in a peer's GOAWAY to follow: `same-host`, `follow` (any host) or `ignore`.",
	}, func(d *draft) *cluster.Redirect { return &d.Connect.Redirect }),
	newKey("connect.goaway.handover", durationKind, about{
		def: `"10s"`,
		doc: "How long a session serves on beside the one that replaces it.",
	}, func(d *draft) *time.Duration { return &d.Connect.HandoverDuration }, positive),
	newKey("connect.tls.root", filesKind, about{
		example: `["/etc/moqmesh/cluster-ca.pem"]`,
		doc:     "Certificate authorities to trust, PEM. They replace those of the system.",
	}, func(d *draft) *[]string { return &d.Connect.TLS.Roots }),
	newKey("connect.tls.system_roots", boolKind, about{
		example: "true",
		doc:     "Trust the authorities of the system. True by default if `root` is empty.",
	}, func(d *draft) *bool { return &d.Connect.TLS.SystemRoots }),
	newKey("connect.tls.fingerprint", pinsKind, about{
		example: `["` + strings.Repeat("ab", 32) + `"]`,
		doc:     "SHA-256 of certificates to accept, whoever signed them and whatever they are for.",
	}, func(d *draft) *[]string { return &d.Connect.TLS.Fingerprints }),
	newKey("connect.tls.cert", fileKind, about{
		example: `"/etc/moqmesh/client.pem"`,
		doc:     "Client certificate to present to peers, PEM; needs `key`.",
	}, func(d *draft) *string { return &d.Connect.TLS.Cert }),
	newKey("connect.tls.key", fileKind, about{
		example: `"/etc/moqmesh/client-key.pem"`,
		doc:     "Private key of the client certificate, PEM.",
	}, func(d *draft) *string { return &d.Connect.TLS.Key }),
	newKey("connect.tls.insecure", boolKind, about{
		def: "false",
		doc: "Trust every certificate. For tests only.",
	}, func(d *draft) *bool { return &d.Connect.TLS.Insecure }),
	newKey("connect.tls.host_name", textKind, about{
		example: `"relay.example.com"`,
		doc:     "Name that certificates of peers must carry, in place of the dialed host.",
	}, func(d *draft) *string { return &d.Connect.TLS.HostName }),
}

var quicKeys = []*key{
	newKey("quic.idle_timeout", durationKind, about{
		def: `"10s"`,
		doc: "A connection without any packet for so long is dead. The smaller value of both ends counts.",
	}, func(d *draft) *time.Duration { return &d.QUIC.IdleTimeout }, positive),
	newKey("quic.keep_alive", durationKind, about{
		def: `"3s"`,
		doc: "Idle connections send a packet this often. `0s` = never. Keep it well below `idle_timeout`.",
	}, func(d *draft) *time.Duration { return &d.QUIC.KeepAlive }),
	newKey("quic.max_streams", numberKind, about{
		def: "10000",
		doc: "Streams of each kind that the other end may have open.",
	}, func(d *draft) *uint64 { return &d.maxStreams }, between(uint64(1), 1<<60)),
	newKey("quic.receive_window", sizeKind, about{
		def: `"64MiB"`,
		doc: "Bytes in flight towards us per connection.",
	}, func(d *draft) *uint64 { return &d.QUIC.ReceiveWindow }, between(uint64(1<<14), 1<<62-1)),
	newKey("quic.stream_receive_window", sizeKind, about{
		example: `"6MiB"`,
		doc:     "Bytes in flight towards us per stream. Unset, the QUIC library decides.",
	}, func(d *draft) *uint64 { return &d.QUIC.StreamReceiveWindow }, between(uint64(1<<14), 1<<62-1)),
}

var clusterKeys = []*key{
	newKey("cluster.id", numberKind, about{
		example: "1001",
		doc:     "Our hop id, unique in the cluster. Random at each start if unset. Keep it below 2^53 if browsers connect.",
	}, func(d *draft) *uint64 { return &d.Cluster.ID }, between(uint64(1), 1<<62-1)),
	newKey("cluster.max_hops", numberKind, about{
		def: "32",
		doc: "Routes through more relays than this are not taken.",
	}, func(d *draft) *uint64 { return &d.maxHops }, between(uint64(1), route.MaxHops)),
	newKey("cluster.connect", peersKind, about{
		example: `["https://us-east.example.com/?cost=10", { url = "https://sibling.example.com/", cost = 0 }]`,
		doc:     "Peers to dial: URLs, or tables with `url`, `cost`, `egress` and `token`. `?cost=N` is the price of the link, 1 if unset; `?jwt=` a credential. Schemes: https (WebTransport), moqt and moql (raw QUIC), wss (WebSocket with TLS, for long links), ws (without) and http (development).",
	}, func(d *draft) *[]any { return &d.peers }, checkPeers),
	newKey("cluster.connect_api", textKind, about{
		example: `"https://api.example.com/cluster/peers"`,
		doc:     "Where more peers are listed, as a JSON array of what `connect` takes: an https or http URL, asked every 30s as its caching headers allow, or a file, which is watched. Peers that the list no longer names are dropped; a list that cannot be used changes nothing.",
	}, func(d *draft) *string { return &d.peerList }, checkPeerList),
	newKey("cluster.node", textKind, about{
		example: `"https://us-west.example.com/"`,
		doc:     "Our own address: a URL, or a host with or without port. Peers listed under it are not dialed, and the server behind `connect_api` is told it as `?node=`.",
	}, func(d *draft) *string { return &d.node }, checkNode),
	newKey("cluster.token", fileKind, about{
		example: `"/etc/moqmesh/cluster.jwt"`,
		doc:     "File with a credential for peers that have none of their own. Read again for every dial.",
	}, func(d *draft) *string { return &d.token }),
	newKey("cluster.hedge", durationKind, about{
		def: `"500ms"`,
		doc: "When a track that has been flowing falls silent for so long, or for twice its longest recent gap if that is more, it is asked for along another route as well, and who delivers first wins. Dialed peers are then pinged every half of this. `0s` = wait until the peer is known to be dead.",
	}, func(d *draft) *time.Duration { return &d.Cluster.Hedge }, offOrFrom(minHedge)),
	newKey("cluster.congestion", textKind, about{
		def: `"bbr"`,
		doc: "TCP congestion control of sessions with peers over WebSocket, in both directions, as the kernel calls it: bbr fills long links that lose packets. `system` leaves it to the kernel, as does a kernel that does not have it, with a line in the log.",
	}, func(d *draft) *string { return &d.Cluster.Congestion }, readCongestion),
	newKey("cluster.tier", textKind, about{
		example: `"cluster"`,
		doc:     "Label of peer sessions in statistics.",
	}, func(d *draft) *string { return &d.Cluster.Tier }),
}

var webKeys = []*key{
	newKey("web.http.listen", addressKind, about{
		example: `"[::]:80"`,
		doc:     "TCP address for HTTP. Off if unset.",
	}, func(d *draft) *string { return &d.Web.HTTPListen }),
	newKey("web.https.listen", addressKind, about{
		example: `"[::]:443"`,
		doc:     "TCP address for HTTPS. Off if unset. May have the number of the QUIC port.",
	}, func(d *draft) *string { return &d.Web.HTTPSListen }),
	newKey("web.https.cert", filesKind, about{
		example: `["/etc/moqmesh/cert.pem"]`,
		doc:     "Certificate chains for HTTPS, as `listen.tls.cert`.",
	}, func(d *draft) *[]string { return &d.webCerts }),
	newKey("web.https.key", filesKind, about{
		example: `["/etc/moqmesh/key.pem"]`,
		doc:     "Private keys for HTTPS.",
	}, func(d *draft) *[]string { return &d.webCertKeys }),
	newKey("web.https.root", filesKind, about{
		example: `["/etc/moqmesh/client-ca.pem"]`,
		doc:     "Certificate authorities of HTTPS clients, as `listen.tls.root`.",
	}, func(d *draft) *[]string { return &d.Web.HTTPSRoots }),
	newKey("web.ws", boolKind, about{
		def: "true",
		doc: "Take sessions over WebSocket, at any path, on both listeners: for clients that cannot use UDP, and for peers on long links.",
	}, func(d *draft) *bool { return &d.Web.WebSocket }),
}

var otherKeys = []*key{
	newKey("internal.listen", addressKind, about{
		example: `"127.0.0.1:4444"`,
		doc:     "TCP address for plain HTTP without authentication: use loopback or a private network. Off if unset.",
	}, func(d *draft) *string { return &d.Internal.Listen }),
	newKey("stats.enabled", boolKind, about{
		def: "false",
		doc: "Publish what is counted, as tracks publisher.json, subscriber.json and sessions.json and with .z compressed.",
	}, func(d *draft) *bool { return &d.Stats.Enabled }),
	newKey("stats.prefix", pathKind, about{
		def: `".stats"`,
		doc: "Where the broadcasts are: `<prefix>/node/<node>`. A name that starts with a dot is hidden. Traffic below it is not counted.",
	}, func(d *draft) *string { return &d.Stats.Prefix }, notEmpty),
	newKey("stats.interval", numberKind, about{
		def: "1",
		doc: "Seconds between two frames.",
	}, func(d *draft) *uint64 { return &d.statsInterval }, between(uint64(1), 86400)),
	newKey("stats.node", pathKind, about{
		example: `"us-west"`,
		doc:     "Our name in the broadcasts, and for an auth server, which else is told `cluster.node`.",
	}, func(d *draft) *string { return &d.Stats.Node }),
	newKey("stats.depth", numberKind, about{
		def: "0",
		doc: "So many leading segments of paths make a group with a broadcast of its own, `<prefix>/<group>/node/<node>`; 0 = one for all.",
	}, func(d *draft) *uint64 { return &d.statsDepth }, between(uint64(0), paths.MaxSegments)),
	newKey("stats.linger", durationKind, about{
		def: `"5m"`,
		doc: "How long after its last traffic a broadcast is still counted, and a group still announced.",
	}, func(d *draft) *time.Duration { return &d.Stats.Linger }, positive),
	newKey("cache.capacity", capacityKind, about{
		def: `"50%"`,
		doc: "Most memory for groups: a size, or a part of the memory that this process may use.",
	}, func(d *draft) *Capacity { return &d.Cache.Capacity }),
	newKey("cache.headroom", sizeKind, about{
		example: `"1GiB"`,
		doc:     "Memory to keep free for others: every 5s the cache is made smaller, or larger again up to `capacity`.",
	}, func(d *draft) *uint64 { return &d.Cache.Headroom }, between(uint64(1), 1<<62)),
	newKey("cache.duration", durationKind, about{
		example: `"30s"`,
		doc:     "How long a group that nobody reads is kept, and the longest that any is, whatever its track says. Unset: 30s unread, no other limit.",
	}, func(d *draft) *time.Duration { return &d.Cache.Idle }, positive),
	newKey("log.level", levelKind, about{
		def: `"info"`,
		doc: "Least important events to log: trace, debug, info, warn or error. The variable MOQMESH_LOG overrides everything else.",
	}, func(d *draft) *slog.Level { return &d.Log.Level }),
	newKey("drain_timeout", durationKind, about{
		def: `"10s"`,
		doc: "Time for sessions to leave after the first SIGINT or SIGTERM. `0s` = they are closed at once.",
	}, func(d *draft) *time.Duration { return &d.DrainTimeout }),
}

func allVersions() string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = `"` + v.String() + `"`
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func positive(d time.Duration) error { return durationFrom(time.Nanosecond)(d) }

// minHedge keeps the pings of an idle session at some ten per second.
const minHedge = 100 * time.Millisecond

// offOrFrom takes nothing or at least so much.
func offOrFrom(least time.Duration) func(time.Duration) error {
	return func(d time.Duration) error {
		if d == 0 {
			return nil
		}
		return durationFrom(least)(d)
	}
}

func durationFrom(least time.Duration) func(time.Duration) error {
	return func(d time.Duration) error {
		switch {
		case d >= least:
			return nil
		case least > time.Nanosecond:
			return fmt.Errorf("less than %s", formatDuration(least))
		}
		return errors.New("must be more than nothing")
	}
}

func checkPeers(values []any) error {
	_, err := cluster.Parse(values, cluster.Options{})
	return err
}

func checkPeerList(text string) error {
	if text == "" {
		return nil
	}
	_, err := peerlist.ParseSource(text)
	return err
}

func parsePath(text string) (string, error) {
	path, err := paths.Clean(text)
	if err != nil {
		return "", fmt.Errorf("no path: %w", err)
	}
	return path, nil
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func checkNode(text string) error {
	if text == "" {
		return nil
	}
	_, err := cluster.ParseNode(text)
	return reason(err)
}

// reason is what is wrong with an entry, without its place in a list.
func reason(err error) error {
	if bad, ok := errors.AsType[*cluster.EntryError](err); ok {
		return bad.Err
	}
	return err
}

// checkPatterns refuses patterns that auth would; an empty list is none.
func checkPatterns(list []string) error {
	_, err := auth.NewPublic(auth.PublicRules{Both: list})
	if errors.Is(err, auth.ErrNoRules) {
		return nil
	}
	return err
}

// systemCongestion leaves the congestion control to the system.
const systemCongestion = "system"

// readCongestion checks the name of a congestion control; there are no others in the kernel.
func readCongestion(text string) error {
	const most = 15
	if text == "" || len(text) > most || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return fmt.Errorf("%q is no name of a congestion control", text)
	}
	return nil
}
