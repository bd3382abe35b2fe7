package config

import (
	"fmt"
	"slices"
	"strings"
)

// outside is a setting that other relays know and that does not exist here. None is ignored in silence.
type outside struct {
	name    string
	boolean bool   // as a flag it takes no value
	why     string // to refuse it with, or what to warn of
	off     string // a value that is accepted because it asks for what happens anyway; empty = none
}

// inert settings are accepted with a warning: without them the relay does its work all the same.
var inert = []outside{
	{name: "connect.url", why: "the relay itself connects to nothing; peers are listed in cluster.connect"},
	{name: "connect.once", boolean: true, why: "peers are always dialed again", off: "false"},
	{name: "connect.websocket.enabled", boolean: true, why: "there is no fallback to WebSocket", off: "false"},
	{name: "connect.websocket.delay", why: "there is no fallback to WebSocket"},
	{name: "quic.send_window", why: "the QUIC library decides"},
	{name: "quic.gso", boolean: true, why: "the QUIC library decides"},
	{name: "quic.mtu_discovery", boolean: true, why: "the QUIC library decides"},
	{name: "quic.congestion_control", why: "the QUIC library has loss-based control only", off: "loss"},
	{name: "quic.qlog", why: "no qlog files are written"},
	{name: "runtime.workers", why: "the Go runtime decides"},
	{name: "runtime.pin", boolean: true, why: "the Go runtime decides", off: "false"},
	{name: "runtime.io_uring", boolean: true, why: "the Go runtime decides", off: "false"},
}

const notYet = "is not supported yet"

// unsupported settings are refused: the relay would do something else than what was asked for. A name that ends in a
// dot stands for everything below.
var unsupported = []outside{
	{name: "listen.tcp.bind", why: notYet},
	{name: "listen.unix.", why: notYet},
	{name: "listen.preferred_v4", why: "is not supported"},
	{name: "listen.preferred_v6", why: "is not supported"},
	{name: "listen.lb_id", why: "is not supported"},
	{name: "listen.lb_nonce", why: "is not supported"},
	{name: "cluster.link_sessions", why: notYet, off: "1"},
	{name: "iroh.enabled", boolean: true, why: "is not supported", off: "false"},
	{name: "iroh.", why: "is not supported"},
}

// renamed settings had these names in older relays. Each stands for everything below it too.
var renamed = []struct{ name, hint string }{
	{"server.quic", "renamed to [quic]"},
	{"server", "renamed to [listen]"},
	{"client.quic", "renamed to [quic]"},
	{"client", "renamed to [connect]"},
	{"cluster.mesh", "removed: relays no longer dial whom they hear of, list the peers in cluster.connect"},
	{"cluster.linger", "removed: the routes of a lost peer go at once"},
	{"auth.key_dir", "renamed to key_dir in [auth.local]; a URL goes to jwks there"},
	{"auth.key", "renamed to key in [auth.local]"},
	{"auth.auth_api", "renamed to auth.url"},
	{"auth.domains", "removed: an auth server (auth.url) decides by host name"},
	{"auth.mtls_tier", "removed: the tier comes with the grant, see tier in [auth.local]"},
	{"auth.tls", "moved to listen.tls.root"},
}

// below reports whether name is what prefix names, or lies below it; sep separates the parts of a name.
func below(name, prefix, sep string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+sep)
}

// spelling is how keys are written in one layer.
type spelling struct {
	of  func(key string) string // spells the name of a key
	sep string                  // between the parts
}

var (
	inFile  = spelling{func(name string) string { return name }, "."}
	inFlags = spelling{flagName, "-"}
	inEnv   = spelling{envName, "_"}
)

// hint says what became of an old name.
func (s spelling) hint(name string) (string, bool) {
	for _, r := range renamed {
		if below(name, s.of(r.name), s.sep) {
			return r.hint, true
		}
	}
	return "", false
}

// find looks up an outside setting.
func (s spelling) find(list []outside, name string) (outside, bool) {
	at := slices.IndexFunc(list, func(o outside) bool {
		if dir, ok := strings.CutSuffix(o.name, "."); ok {
			return below(name, s.of(dir), s.sep)
		}
		return name == s.of(o.name)
	})
	if at < 0 {
		return outside{}, false
	}
	return list[at], true
}

// means reports whether a raw value is the one that is accepted.
func (o outside) means(raw any) bool { return o.off != "" && fmt.Sprint(raw) == o.off }
