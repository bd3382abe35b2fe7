package cluster

import (
	"net/url"
	"strings"
)

// query is a raw query string. Parameters that are none of ours stay byte for byte what they were, so it is edited
// as text. Values of jwt are not decoded (A5).
type query string

// parameter is one part of a query.
type parameter struct {
	raw   string // as written
	key   string // decoded
	value string // as written
}

// parameters yields the parts of a query in their order.
func (q query) parameters(yield func(parameter) bool) {
	if q == "" {
		return
	}
	for raw := range strings.SplitSeq(string(q), "&") {
		key, value, _ := strings.Cut(raw, "=")
		if decoded, err := url.QueryUnescape(key); err == nil {
			key = decoded
		}
		if !yield(parameter{raw, key, value}) {
			return
		}
	}
}

// values returns the non-empty values of key.
func (q query) values(key string) (out []string) {
	for p := range q.parameters {
		if p.key == key && p.value != "" {
			out = append(out, p.value)
		}
	}
	return out
}

func (q query) has(key string) bool { return len(q.values(key)) > 0 }

// without drops the parameters for which drop says so, and empty ones such as in "a&&b".
func (q query) without(drop func(parameter) bool) query {
	var keep []string
	for p := range q.parameters {
		if p.raw != "" && !drop(p) {
			keep = append(keep, p.raw)
		}
	}
	return query(strings.Join(keep, "&"))
}

// with appends a parameter. The value must be fit for a query, see validToken.
func (q query) with(key, value string) query {
	if q == "" {
		return query(key + "=" + value)
	}
	return q + query("&"+key+"="+value)
}

// validToken reports whether a credential can stand in a query as it is. Nobody decodes it (A5), so it cannot be
// escaped.
func validToken(token string) bool {
	for i := range len(token) {
		c := token[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~+/=:@!$'()*,;", c) >= 0:
		default:
			return false
		}
	}
	return true
}
