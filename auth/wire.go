package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/internal/strictjson"
	"github.com/moqmesh/moqmesh/paths"
)

// Limits of what an auth server says.
const (
	maxPatterns = 1024 // per direction
	maxTier     = 128  // bytes
	maxMounts   = 64   // each costs a session memory for every announce stream
	// clockSkew is how far in the past a grant's end may be when it arrives (A10).
	clockSkew = 5 * time.Second
	// maxRevalidate bounds what a cadence is taken for.
	maxRevalidate = 365 * 24 * time.Hour
	// maxSeconds bounds what a duration is taken for.
	maxSeconds = 1 << 33
	// latestUnix is when grants end that are to last longer still.
	latestUnix = 1 << 40
)

// requestJSON is a Request on its way, in the order that the contract gives (auth 5.2).
type requestJSON struct {
	ID         string     `json:"id"`
	Event      Event      `json:"event"`
	Reason     string     `json:"reason,omitempty"`
	Duration   *float64   `json:"duration,omitempty"`
	Bytes      *bytesJSON `json:"bytes,omitempty"`
	Node       string     `json:"node"`
	Transport  Transport  `json:"transport"`
	Remote     string     `json:"remote,omitempty"`
	Local      string     `json:"local,omitempty"`
	ServerName string     `json:"server_name,omitempty"`
	ALPN       string     `json:"alpn,omitempty"`
	Path       string     `json:"path"`
	Query      string     `json:"query,omitempty"`
	Token      *tokenJSON `json:"token,omitempty"`
	Role       Role       `json:"role,omitempty"`
	TLS        *tlsJSON   `json:"tls,omitempty"`
}

type bytesJSON struct {
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
}

type tokenJSON struct {
	Kind  uint64 `json:"kind"`
	Value string `json:"value"`
}

type tlsJSON struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	Expires     int64  `json:"expires"`
	Issuer      string `json:"issuer"`
}

// EncodeRequest writes a request as auth servers read it. end is given for EventEnd only.
func EncodeRequest(r Request, end *End) []byte {
	j := requestJSON{
		ID: r.ID, Event: r.Event, Node: r.Node, Transport: r.Transport, Remote: r.Remote, Local: r.Local,
		ServerName: r.ServerName, ALPN: r.ALPN, Path: r.Path, Query: r.Query, Role: r.Role,
	}
	if j.Event == "" {
		j.Event = EventConnect
	}
	if end != nil {
		seconds := end.Duration.Seconds()
		j.Reason, j.Duration, j.Bytes = end.Reason, &seconds, &bytesJSON{end.Sent, end.Received}
	}
	if t := r.SetupToken; t != nil {
		j.Token = &tokenJSON{t.Kind, base64.RawURLEncoding.EncodeToString(t.Value)}
	}
	if t := r.TLS; t != nil {
		j.TLS = &tlsJSON{t.Name, t.Fingerprint, t.Expires.Unix(), t.Issuer}
	}
	return encode(j)
}

// encode writes JSON without the detours of HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // texts and numbers only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// errRequest says that a request is not one of the contract.
var errRequest = errors.New("not a request of the auth contract")

// DecodeRequest reads a request as an auth server gets it; end is not nil for EventEnd only. Unknown members are
// ignored.
func DecodeRequest(body []byte) (r Request, end *End, err error) {
	if _, err := strictjson.Object(body); err != nil {
		return Request{}, nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	var j requestJSON
	if err := json.Unmarshal(body, &j); err != nil {
		return Request{}, nil, errRequest
	}
	r = Request{
		ID: j.ID, Event: j.Event, Node: j.Node, Transport: j.Transport, Remote: j.Remote, Local: j.Local,
		ServerName: j.ServerName, ALPN: j.ALPN, Path: j.Path, Query: j.Query, Role: j.Role,
	}
	if t := j.Token; t != nil {
		value, err := base64.RawURLEncoding.DecodeString(t.Value)
		if err != nil {
			return Request{}, nil, fmt.Errorf("%w: token", errRequest)
		}
		r.SetupToken = &SetupToken{Kind: t.Kind, Value: value}
	}
	if t := j.TLS; t != nil {
		r.TLS = &Identity{Name: t.Name, Fingerprint: t.Fingerprint, Expires: time.Unix(t.Expires, 0), Issuer: t.Issuer}
	}
	switch {
	case r.ID == "":
		return Request{}, nil, fmt.Errorf("%w: id is missing", errRequest)
	case r.Event == EventEnd:
		end = &End{Reason: j.Reason}
		if j.Duration != nil {
			end.Duration = time.Duration(math.Max(0, math.Min(*j.Duration, maxSeconds)) * float64(time.Second))
		}
		if j.Bytes != nil {
			end.Sent, end.Received = j.Bytes.Sent, j.Bytes.Received
		}
	case r.Event != EventConnect && r.Event != EventRevalidate:
		return Request{}, nil, fmt.Errorf("%w: event %.32q", errRequest, r.Event)
	}
	return r, end, nil
}

// grantJSON is a Grant on its way (auth 5.3).
type grantJSON struct {
	Publish    []string          `json:"publish,omitempty"`
	Subscribe  []string          `json:"subscribe,omitempty"`
	Root       *string           `json:"root,omitempty"`
	Mounts     map[string]string `json:"mounts,omitempty"`
	Expires    *int64            `json:"expires,omitempty"`
	Revalidate float64           `json:"revalidate,omitempty"`
	Tier       string            `json:"tier,omitempty"`
	Peer       bool              `json:"peer,omitempty"`
}

// EncodeGrant writes a grant as relays read it. The path that was dialed is left out where it is the root. A fraction
// of a second in the end of the grant is cut off, in favour of who granted.
func EncodeGrant(g Grant, dialed string) []byte {
	j := grantJSON{
		Publish: g.Publish.Rebase(g.Root).Strings(), Subscribe: g.Subscribe.Rebase(g.Root).Strings(),
		Revalidate: g.Revalidate.Seconds(), Tier: g.Tier, Peer: g.Peer,
	}
	if root, err := paths.Clean(dialed); err != nil || root != g.Root {
		j.Root = &g.Root
	}
	for _, m := range g.Mounts {
		if name, ok := paths.Suffix(g.Root, m.At); ok {
			if j.Mounts == nil {
				j.Mounts = make(map[string]string, len(g.Mounts))
			}
			j.Mounts[name] = m.Target
		}
	}
	if !g.Expires.IsZero() {
		end := g.Expires.Unix()
		j.Expires = &end
	}
	return encode(j)
}

// DecodeGrant reads the answer of an auth server about a session that dialed a path. What is no JSON object is no
// answer; an object that breaks the contract is an invalid grant, and one that grants nothing a refusal (A10). The error
// is an *Error. Times are not looked at, see Grant.At.
func DecodeGrant(body []byte, dialed string) (Grant, error) {
	members, err := strictjson.Object(body)
	if err != nil {
		return Grant{}, Unavailable("the answer is not readable: %v", err)
	}
	for name, raw := range members {
		if strictjson.IsNull(raw) { // as good as absent
			delete(members, name)
		}
	}
	d := grantDecoder{members: members}
	g := Grant{
		Root: d.root(dialed), Tier: d.tier(), Expires: d.expires(), Revalidate: d.revalidate(), Peer: d.peer(),
	}
	g.Publish, g.Subscribe = d.patterns("publish", g.Root), d.patterns("subscribe", g.Root)
	g.Mounts = d.mounts(g.Root)
	switch {
	case d.err != nil:
		return Grant{}, d.err
	case g.Publish.Empty() && g.Subscribe.Empty():
		return Grant{}, Refuse("the auth server grants nothing")
	}
	return g, nil
}

// grantDecoder reads members and keeps the first error.
type grantDecoder struct {
	members map[string]json.RawMessage
	err     error
}

func (d *grantDecoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = invalid(format, args...)
	}
}

func (d *grantDecoder) root(dialed string) string {
	text := dialed
	if raw, ok := d.members["root"]; ok {
		if text, ok = strictjson.String(raw); !ok {
			d.fail("root is not text")
			return ""
		}
	}
	root, err := paths.Clean(text)
	switch {
	case err != nil:
		d.fail("root: %v", err)
	case strings.Contains(root, "*"):
		d.fail("root: %v", paths.ErrLiteral)
	}
	return root
}

// patterns reads one direction and places it below the root.
func (d *grantDecoder) patterns(name, root string) paths.Set {
	raw, present := d.members[name]
	if !present || d.err != nil {
		return paths.Set{}
	}
	texts, ok := strictjson.Strings(raw)
	if !ok || len(texts) > maxPatterns {
		d.fail("%s is not a list of at most %d patterns", name, maxPatterns)
		return paths.Set{}
	}
	for i, text := range texts {
		texts[i] = strings.Trim(text, "/")
	}
	set, err := paths.ParseSet(texts...)
	if err == nil {
		set, err = set.Rooted(root)
	}
	if err != nil {
		d.fail("%s: %v", name, err)
	}
	return set
}

func (d *grantDecoder) expires() time.Time {
	raw, present := d.members["expires"]
	if !present {
		return time.Time{}
	}
	f, ok := strictjson.Number(raw)
	if !ok || f < 0 {
		d.fail("expires is not a time in unix seconds")
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Min(f, latestUnix) * 1000))
}

func (d *grantDecoder) revalidate() time.Duration {
	raw, present := d.members["revalidate"]
	if !present {
		return 0
	}
	f, ok := strictjson.Number(raw)
	if _, bounded := d.members["expires"]; !ok || f <= 0 || !bounded {
		d.fail("revalidate must be a number of seconds above 0, and needs expires")
		return 0
	}
	return max(time.Millisecond, time.Duration(math.Min(f, maxRevalidate.Seconds())*float64(time.Second)))
}

func (d *grantDecoder) tier() string {
	raw, present := d.members["tier"]
	if !present {
		return ""
	}
	tier, ok := strictjson.String(raw)
	if !ok || len(tier) > maxTier {
		d.fail("tier is not text of at most %d bytes", maxTier)
	}
	return tier
}

func (d *grantDecoder) peer() bool {
	raw, present := d.members["peer"]
	if !present {
		return false
	}
	peer, ok := strictjson.Bool(raw)
	if !ok {
		d.fail("peer is neither true nor false")
	}
	return peer
}

// mounts reads what is read elsewhere, and places it below the root. Mounts that overlap, or that no path can be at, admit
// nobody (A16); they are not what the auth server wants to grant.
func (d *grantDecoder) mounts(root string) paths.Mounts {
	raw, present := d.members["mounts"]
	if !present || d.err != nil {
		return nil
	}
	members, err := strictjson.Object(raw)
	if err != nil || len(members) > maxMounts {
		d.fail("mounts are not an object with at most %d members", maxMounts)
		return nil
	}
	list := make([]paths.Mount, 0, len(members))
	for name, raw := range members {
		target, ok := strictjson.String(raw)
		if !ok {
			d.fail("mounts: the target is not text")
			return nil
		}
		at := paths.Join(root, strings.Trim(name, "/"))
		list = append(list, paths.Mount{At: at, Target: target})
	}
	mounts, err := paths.NewMounts(list...)
	if err != nil && d.err == nil {
		d.err = Refuse("mounts: %v", err)
	}
	return mounts
}

// At is the grant as it counts when it arrives now (A10). An end in the past by no more than clocks differ is 5 s later;
// one further back makes the grant invalid.
func (g Grant) At(now time.Time) (Grant, error) {
	if g.Revalidate > 0 && g.Expires.IsZero() {
		return Grant{}, invalid("revalidate needs expires")
	}
	if g.Expires.IsZero() || g.Expires.After(now) {
		return g, nil
	}
	if g.Expires = g.Expires.Add(clockSkew); !g.Expires.After(now) {
		return Grant{}, invalid("the grant had expired when it arrived")
	}
	return g, nil
}

// Replaces reports whether a grant lets a session go on that has the old one; if it does not, why is a reason to end
// it with (auth 5.4).
func (g Grant) Replaces(old Grant) (why string, ok bool) {
	switch {
	case g.Root != old.Root:
		return "root changed", false
	case !slices.Equal(g.Mounts, old.Mounts):
		return "mounts changed", false
	case g.Peer != old.Peer:
		return "peer changed", false
	case !g.Publish.Contains(old.Publish) || !g.Subscribe.Contains(old.Subscribe):
		return "grant narrowed", false
	}
	return "", true
}
