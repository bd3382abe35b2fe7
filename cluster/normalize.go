package cluster

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Schemes, by what can be done with them.
var (
	dialable = []string{"https", "http", "moqt", "moql", "wss", "ws"}
	notYet   = []string{"tcp", "unix", "iroh"}
)

// defaultPorts are removed from a URL, so that its spellings with and without are one peer.
var defaultPorts = map[string]string{"https": "443", "http": "80", "moqt": "443", "moql": "443", "wss": "443", "ws": "80"}

// normalize brings a URL into the form in which it is compared and dialed (C5): lower-case scheme and host, no default
// port, dot segments resolved, slashes collapsed, no user info, no fragment. The query stays as it is.
func normalize(u *url.URL) (url.URL, error) {
	scheme := strings.ToLower(u.Scheme)
	switch {
	case slices.Contains(notYet, scheme):
		return url.URL{}, ErrNotDialable
	case !slices.Contains(dialable, scheme):
		return url.URL{}, ErrScheme
	}
	host, err := normalHost(u.Hostname())
	if err != nil {
		return url.URL{}, err
	}
	port, err := normalPort(u, scheme)
	if err != nil {
		return url.URL{}, err
	}
	out := *u.JoinPath() // cleans the path
	if out.Path == "" {
		out.Path = "/"
	}
	out.Scheme, out.Host = scheme, host+port
	out.User, out.Fragment, out.RawFragment, out.ForceQuery = nil, "", "", false
	return out, nil
}

// normalHost lower-cases a host name, brings an international one to its ASCII form, and puts an IPv6 address in
// brackets.
func normalHost(host string) (string, error) {
	if host == "" {
		return "", ErrHost
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		if addr.Is6() {
			return "[" + addr.String() + "]", nil
		}
		return addr.String(), nil
	}
	if strings.ContainsAny(host, ":%") || endsInNumber(host) {
		return "", ErrURL
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil || ascii == "" {
			return "", ErrURL
		}
		return ascii, nil
	}
	return strings.ToLower(host), nil
}

// endsInNumber reports whether a host looks like an IPv4 address without being a plain one, such as "127.1" or
// "0x7f000001": some resolvers take these for addresses.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || last != "" && strings.Trim(last, "0123456789") == ""
}

// normalPort returns ":port", or nothing for the default one.
func normalPort(u *url.URL, scheme string) (string, error) {
	port := u.Port()
	if port == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", ErrURL
	}
	port = strconv.FormatUint(n, 10)
	if port == defaultPorts[scheme] {
		return "", nil
	}
	return ":" + port, nil
}

// keyOf is the reduced form of a normalized URL: no query, no trailing slash except that of the root.
func keyOf(u *url.URL) string {
	key := *u
	key.RawQuery = ""
	path := strings.TrimRight(key.EscapedPath(), "/")
	if path == "" {
		path = "/"
	}
	return key.Scheme + "://" + key.Host + path
}

// name is what may be shown of a URL, with the port spelled out.
func name(u *url.URL) string {
	if u.Host == "" {
		return ""
	}
	host := u.Host
	if u.Port() == "" {
		if port := defaultPorts[u.Scheme]; port != "" {
			host += ":" + port
		}
	}
	return u.Scheme + "://" + host
}
