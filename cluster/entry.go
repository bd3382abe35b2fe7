package cluster

import (
	"log/slog"
	"net/url"
	"strings"
)

// Entry is one peer to dial, as a source describes it. It is immutable. Printing or logging one shows scheme, host
// and port only (C7).
type Entry struct {
	key     string
	url     url.URL // normalized; without user info, fragment and cost
	cost    uint64
	hasCost bool
	found   *found // on the LAN; nil = configured
}

// Key names the peer: its URL without query, normalized (C5). Entries with the same key are one peer. It holds the
// path: fit for pages behind the internal listener, not for logs.
func (e Entry) Key() string { return e.key }

// Name is what logs may say of the peer: scheme, host and port.
func (e Entry) Name() string { return name(&e.url) }

// URL is what to dial. It may hold a credential: never log it. The caller owns the copy.
func (e Entry) URL() *url.URL {
	u := e.url
	return &u
}

// Price is what this relay charges for pulling from the peer, which is also what it declares to the peer (C6). Where
// it reports false there is none: nothing is declared and 1 is charged.
func (e Entry) Price() (cost uint64, ok bool) { return e.cost, e.hasCost }

// Same reports whether two entries of one key mean the same dial: the same price and the same query, credential
// included, and for those found on the LAN the same addresses and certificate.
func (e Entry) Same(o Entry) bool {
	return e.key == o.key && e.effectiveCost() == o.effectiveCost() && e.url.RawQuery == o.url.RawQuery && e.found.same(o.found)
}

func (e Entry) effectiveCost() uint64 {
	if e.hasCost {
		return e.cost
	}
	return DefaultCost
}

// WithToken adds a shared credential, unless token is empty, the entry has its own, or the peer was found on the LAN,
// where credentials for others are not handed to whoever answers (C8).
func (e Entry) WithToken(token string) Entry {
	if token == "" || e.found != nil || query(e.url.RawQuery).has("jwt") {
		return e
	}
	e.url.RawQuery = string(query(e.url.RawQuery).with("jwt", token))
	return e
}

func (e Entry) String() string       { return e.Name() }
func (e Entry) GoString() string     { return "cluster.Entry(" + e.Name() + ")" }
func (e Entry) LogValue() slog.Value { return slog.StringValue(e.Name()) }

// scrub removes from text what must not be shown of a dial: errors of HTTP clients like to quote the URL.
func (e Entry) scrub(text string) string {
	if q := e.url.RawQuery; q != "" {
		text = strings.ReplaceAll(text, "?"+q, "")
		for _, v := range query(q).values("jwt") {
			text = strings.ReplaceAll(text, v, "…")
		}
	}
	if e.found != nil {
		text = strings.ReplaceAll(text, e.found.path, "…")
	}
	if p := e.url.EscapedPath(); len(p) > 1 {
		text = strings.ReplaceAll(text, e.url.Host+p, e.url.Host)
	}
	return text
}
