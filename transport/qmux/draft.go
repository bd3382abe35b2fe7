package qmux

import (
	"slices"
	"strings"
)

// Draft is a wire format.
type Draft uint8

// The wire formats, oldest first.
const (
	Legacy  Draft = iota // "webtransport": no parameters, no flow control; WebSocket only
	Draft00              // frames without records; no datagrams, pings and idle timeout
	Draft01
	Draft02
)

// inBand is the draft of TCP and Unix sockets, where nothing negotiates one: what peers are configured for.
const inBand = Draft01

var draftNames = [...]string{Legacy: "webtransport", Draft00: "qmux-00", Draft01: "qmux-01", Draft02: "qmux-02"}

// newestFirst is our preference.
var newestFirst = []Draft{Draft02, Draft01, Draft00, Legacy}

func (d Draft) String() string { return draftNames[d] }

// records reports whether frames travel in records.
func (d Draft) records() bool { return d >= Draft01 }

// ParseToken splits a negotiated WebSocket sub-protocol or ALPN into the draft and the application's protocol, which is empty
// if the token names none. What is absent or unknown stands for the legacy format.
func ParseToken(token string) (d Draft, protocol string) {
	for _, d := range newestFirst {
		if token == d.String() {
			return d, ""
		}
		if protocol, ok := strings.CutPrefix(token, d.String()+"."); ok && d != Legacy {
			return d, protocol
		}
	}
	return Legacy, ""
}

// Tokens are the tokens for protocols, most preferred first: the first protocol on the newest draft; in the end the drafts
// alone, if bare, which leave the protocol to be agreed in band. Clients offer them; servers choose by their own order.
func Tokens(protocols []string, bare bool) []string {
	var out []string
	for _, p := range protocols {
		for _, d := range newestFirst {
			if d != Legacy {
				out = append(out, d.String()+"."+p)
			}
		}
	}
	if bare {
		for _, d := range newestFirst {
			out = append(out, d.String())
		}
	}
	return out
}

// choose returns the first of ours that the peer offers too.
func choose(ours, offered []string) (token string, ok bool) {
	for _, t := range ours {
		if slices.Contains(offered, t) {
			return t, true
		}
	}
	return "", false
}
