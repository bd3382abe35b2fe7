package cluster

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/moqmesh/moqmesh/route"
)

// DefaultCost is charged where a link has no price (C6).
const DefaultCost = 1

// Options say how a list is read.
type Options struct {
	// Self is our own address; entries that name it are dropped. The zero Node filters nothing.
	Self Node
	// BareHosts reads an entry without a scheme as https://<entry>/, as lists over HTTP do; without it such an
	// entry is refused.
	BareHosts bool
}

// List is a peer list that was accepted.
type List struct {
	Entries []Entry // one per key, in the order of the list
	Self    bool    // the list named ourselves
}

// Parse reads a peer list. Each value is a string or an object: map[string]any with url, cost, egress and token, where
// numbers are int64 or uint64. A list is accepted or refused as a whole; the error is an *EntryError for the first
// entry at fault.
func Parse(values []any, opt Options) (List, error) {
	var list List
	for i, v := range values {
		e, err := parseValue(v, opt.BareHosts)
		if err != nil {
			err.Index = i
			return List{}, err
		}
		if opt.Self.key != "" && e.key == opt.Self.key {
			list.Self = true
			continue
		}
		at := slices.IndexFunc(list.Entries, func(o Entry) bool { return o.key == e.key })
		switch {
		case at < 0:
			list.Entries = append(list.Entries, e)
		case !list.Entries[at].Same(e):
			return List{}, &EntryError{Index: i, Name: e.Name(), Err: ErrConflict}
		}
	}
	return list, nil
}

func parseValue(v any, bareHosts bool) (Entry, *EntryError) {
	switch v := v.(type) {
	case string:
		return parseString(v, bareHosts)
	case map[string]any:
		return parseObject(v, bareHosts)
	}
	return Entry{}, &EntryError{Err: ErrShape}
}

// parseString reads a URL. A price in its query is taken out, a credential stays in.
func parseString(text string, bareHosts bool) (Entry, *EntryError) {
	if !strings.Contains(text, "://") {
		if !bareHosts || text == "" || strings.ContainsAny(text, "/\\") {
			return Entry{}, &EntryError{Name: shorten(text), Err: ErrBareHost}
		}
		text = "https://" + text + "/"
	}
	bad := func(err error) (Entry, *EntryError) { return Entry{}, &EntryError{Name: shorten(text), Err: err} }
	beforeQuery, _, _ := strings.Cut(text, "?")
	if !plain(text) || strings.Count(beforeQuery, "://") > 1 { // the latter is a list without its brackets
		return bad(ErrURL)
	}
	raw, err := url.Parse(text)
	if err != nil || raw.Opaque != "" {
		return bad(ErrURL)
	}
	u, err := normalize(raw)
	if err != nil {
		return bad(err)
	}
	e := Entry{key: keyOf(&u), url: u}
	if e.cost, e.hasCost, err = costParameter(query(u.RawQuery)); err != nil {
		return Entry{}, &EntryError{Name: e.Name(), Err: err}
	}
	e.url.RawQuery = string(query(u.RawQuery).without(func(p parameter) bool {
		return p.key == "cost" || p.key == "jwt" && p.value == ""
	}))
	return e, nil
}

// costParameter reads ?cost=. It must be there once at most.
func costParameter(q query) (cost uint64, ok bool, err error) {
	for p := range q.parameters {
		if p.key != "cost" {
			continue
		}
		cost, err = strconv.ParseUint(p.value, 10, 64)
		if err != nil || cost > route.MaxCost || ok {
			return 0, false, ErrCost
		}
		ok = true
	}
	return cost, ok, nil
}

// object is the object form before its parts are held against each other.
type object struct {
	url          string
	cost, egress *uint64
	token        string
}

// parseObject reads {url, cost, egress, token}. With any of the last three the URL must carry neither price nor
// credential: which of the two would win is nothing to guess.
func parseObject(fields map[string]any, bareHosts bool) (Entry, *EntryError) {
	var o object
	if err := o.read(fields); err != nil {
		text, _ := fields["url"].(string)
		err.Name = shorten(text)
		return Entry{}, err
	}
	e, bad := parseString(o.url, bareHosts)
	if bad != nil {
		return Entry{}, bad
	}
	if o.cost == nil && o.egress == nil && o.token == "" {
		return e, nil
	}
	fail := func(field string, err error) (Entry, *EntryError) {
		return Entry{}, &EntryError{Name: e.Name(), Field: field, Err: err}
	}
	if e.hasCost || query(e.url.RawQuery).has("jwt") {
		return fail("url", ErrPolicyTwice)
	}
	if o.cost != nil {
		e.cost, e.hasCost = *o.cost, true
	}
	if o.egress != nil {
		if *o.egress != e.effectiveCost() {
			return fail("egress", ErrAsymmetric)
		}
		e.cost, e.hasCost = *o.egress, true
	}
	if !validToken(o.token) {
		return fail("token", ErrToken)
	}
	return e.WithToken(o.token), nil
}

func (o *object) read(fields map[string]any) *EntryError {
	var ok bool
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v, err := fields[name], error(nil)
		switch name {
		case "url":
			if o.url, ok = v.(string); !ok {
				err = ErrFieldType
			}
		case "cost":
			o.cost, err = number(v)
		case "egress":
			o.egress, err = number(v)
		case "token":
			if o.token, ok = v.(string); !ok {
				err = ErrFieldType
			}
		default:
			name, err = shorten(name), ErrUnknownField
		}
		if err != nil {
			return &EntryError{Field: name, Err: err}
		}
	}
	if _, ok := fields["url"]; !ok {
		return &EntryError{Field: "url", Err: ErrFieldType}
	}
	return nil
}

func number(v any) (*uint64, error) {
	var n uint64
	switch v := v.(type) {
	case int64:
		if v < 0 {
			return nil, ErrCost
		}
		n = uint64(v)
	case uint64:
		n = v
	default:
		return nil, ErrCost
	}
	if n > route.MaxCost {
		return nil, ErrCost
	}
	return &n, nil
}

// plain reports whether text is free of what no URL holds: spaces, control characters, bad UTF-8.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
}

// shorten makes of a refused entry something that can be shown: what stands before path, query and fragment, without
// user info, and nothing at all unless that looks like a host: it might be a credential in the wrong place.
func shorten(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	}
	if i := strings.IndexAny(rest, "/?#\\&="); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if !hostLike(rest) || !hostLike(scheme) {
		return ""
	}
	if found {
		return scheme + "://" + rest
	}
	return rest
}

// hostLike reports whether text could be a host with a port. The shortest of tokens is longer than this takes.
func hostLike(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_:.[]+", c) >= 0:
		default:
			return false
		}
	}
	return len(text) <= 64
}

// Node is our own address (C22).
type Node struct {
	key  string
	url  url.URL
	cost *uint64 // ?cost=, which only LAN peers read; nil = none
}

// ParseNode reads cluster.node: a URL, or a bare host[:port] which stands for https://host[:port]/. The error is an
// *EntryError.
func ParseNode(text string) (Node, error) {
	e, err := parseString(text, true)
	if err != nil {
		return Node{}, err
	}
	n := Node{key: e.key, url: e.url}
	if e.hasCost {
		n.cost = &e.cost
	}
	return n, nil
}

// Key is the peer key under which others know us; empty for the zero Node.
func (n Node) Key() string { return n.key }

// IsZero reports whether no address was given.
func (n Node) IsZero() bool { return n.key == "" }

func (n Node) String() string { return name(&n.url) }
