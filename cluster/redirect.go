package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Redirect says which GOAWAY URIs are followed (C12).
type Redirect uint8

// The policies for GOAWAY URIs.
const (
	RedirectSameHost Redirect = iota // to other ports and paths of the same host
	RedirectFollow                   // to any host, within the limits of CheckRedirect
	RedirectIgnore                   // never: as if the GOAWAY had named none
)

func (r Redirect) String() string {
	switch r {
	case RedirectSameHost:
		return "same-host"
	case RedirectFollow:
		return "follow"
	case RedirectIgnore:
		return "ignore"
	default:
		return fmt.Sprintf("redirect %d", uint8(r))
	}
}

// ErrRedirect is wrapped by the errors of CheckRedirect.
var ErrRedirect = errors.New("the peer's GOAWAY address is not followed")

// CheckRedirect decides whether a session dialed as from may move to the address that the peer's GOAWAY names, and
// returns the entry to dial. The address must be an absolute URL that can be dialed, must not give up encryption,
// must not lead from a public to a literal local address, and must keep the host unless the policy is RedirectFollow.
// Price and key stay those of from. A credential goes along to the same host only.
func CheckRedirect(policy Redirect, from Entry, uri string) (Entry, error) {
	refuse := func(why string) (Entry, error) { return Entry{}, fmt.Errorf("%w: %s", ErrRedirect, why) }
	if policy == RedirectIgnore {
		return refuse("the policy is ignore")
	}
	to, bad := parseString(uri, false)
	if bad != nil {
		return refuse(bad.Err.Error())
	}
	sameHost := to.url.Hostname() == from.url.Hostname()
	switch {
	case secure(&from.url) && !secure(&to.url):
		return refuse("it gives up encryption")
	case local(&to.url) && !local(&from.url):
		return refuse("it leads to a local address")
	case !sameHost && policy != RedirectFollow:
		return refuse("it leads to another host")
	}
	to.key, to.cost, to.hasCost = from.key, from.cost, from.hasCost
	if from.found != nil && sameHost {
		to = to.foundAs(found{path: from.found.path, fingerprint: from.found.fingerprint})
	}
	if token := query(from.url.RawQuery).values("jwt"); sameHost && len(token) > 0 {
		to = to.WithToken(token[len(token)-1])
	}
	return to, nil
}

func secure(u *url.URL) bool { return u.Scheme != "http" && u.Scheme != "ws" }

// local reports whether a URL names a local host by address, or this host by its usual name.
func local(u *url.URL) bool {
	host := strings.TrimSuffix(u.Hostname(), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	addr = addr.Unmap()
	return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() ||
		addr.IsMulticast() || sharedSpace.Contains(addr)
}

// sharedSpace is the address space that carriers share behind their translators (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
