package admin

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// filter are conditions on a session; all must hold.
type filter []func(*Session) bool

func (f filter) match(s *Session) bool {
	for _, condition := range f {
		if !condition(s) {
			return false
		}
	}
	return true
}

// exactFields are those that are compared as they are.
var exactFields = map[string]func(*Session) string{
	"id":              func(s *Session) string { return s.ID },
	"node":            func(s *Session) string { return s.Node },
	"transport":       func(s *Session) string { return s.Transport },
	"local":           func(s *Session) string { return s.Local },
	"server_name":     func(s *Session) string { return s.ServerName },
	"alpn":            func(s *Session) string { return s.ALPN },
	"role":            func(s *Session) string { return s.Role },
	"tls.name":        func(s *Session) string { return s.identity().Name },
	"tls.fingerprint": func(s *Session) string { return s.identity().Fingerprint },
	"tls.issuer":      func(s *Session) string { return s.identity().Issuer },
}

func (s *Session) identity() ClientIdentity {
	if s.TLS == nil {
		return ClientIdentity{}
	}
	return *s.TLS
}

// maxFilters bounds the conditions of one request.
const maxFilters = 100

// parseFilter reads a query. Its errors are fit for the client.
func parseFilter(query string, pathMatcher func(string) (func(string) bool, error)) (filter, error) {
	var f filter
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		if len(f) == maxFilters {
			return nil, errors.New("too many filters")
		}
		rawField, rawValue, _ := strings.Cut(part, "=")
		field, err := url.QueryUnescape(rawField)
		if err != nil {
			return nil, fmt.Errorf("unknown filter field: %s", rawField)
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, fmt.Errorf("invalid %s: %s", field, rawValue)
		}
		condition, known, err := parseCondition(field, value, pathMatcher)
		switch {
		case !known:
			return nil, fmt.Errorf("unknown filter field: %s", field)
		case err != nil:
			return nil, fmt.Errorf("invalid %s: %s", field, value)
		}
		f = append(f, condition)
	}
	return f, nil
}

func parseCondition(field, value string, pathMatcher func(string) (func(string) bool, error)) (condition func(*Session) bool, known bool, err error) {
	switch field {
	case "path":
		match, err := pathMatcher(value)
		return func(s *Session) bool { return match(cleanPath(s.Path)) }, true, err
	case "remote":
		prefix, err := parsePrefix(value)
		return func(s *Session) bool {
			addr, err := netip.ParseAddrPort(s.Remote)
			return err == nil && prefix.Contains(addr.Addr().Unmap().WithZone(""))
		}, true, err
	}
	get := exactFields[field]
	return func(s *Session) bool { return get(s) == value }, get != nil, nil
}

// parsePrefix reads an address or a range of addresses; IPv4 in IPv6 clothes is IPv4.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, errors.New("range over both families")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// cleanPath removes the slashes that do not count (A4).
func cleanPath(path string) string {
	return strings.Join(strings.FieldsFunc(path, func(c rune) bool { return c == '/' }), "/")
}
