package lan

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// Names of DNS-SD. All names in this package are absolute, and compared in lower case.
const (
	serviceName = "_moq._udp.local."
	metaName    = "_services._dns-sd._udp.local." // where all types of services are listed
	hostDomain  = ".local."
)

// subtypeName is what relays of an application browse and register under (L2).
func subtypeName(app string) string { return "_" + app + "._sub." + serviceName }

// Keys of TXT strings.
const (
	keyFingerprint = "fp"
	keyNode        = "node"
	keyNonce       = "n"
	keyAdvert      = "a"
)

// Limits of what a record may say.
const (
	maxNode = 250 // bytes: a TXT string is at most 255 with its key
	maxApp  = 62  // bytes: a label is at most 63 with its underscore
)

// record is what one relay says of itself.
type record struct {
	app      string
	instance string // 16 hex digits, random per start
	port     uint16

	nonce       string // 32 hex digits, random per start
	fingerprint string // SHA-256 of its certificate, 64 hex digits; empty = ordinary validation
	node        string // its URL; empty = dial the addresses
	advert      string // the proof; empty = no secret
}

// host is the name whose addresses are the relay's.
func (r *record) host() string { return r.instance + hostDomain }

// name is the full name of the instance.
func (r *record) name() string { return r.instance + "." + serviceName }

// id decides who dials whom (L6).
func (r *record) id() string {
	if r.node != "" {
		return r.node
	}
	return r.instance
}

// txt returns the TXT strings.
func (r *record) txt() (out []string) {
	for _, kv := range [][2]string{
		{keyFingerprint, r.fingerprint}, {keyNode, r.node}, {keyNonce, r.nonce}, {keyAdvert, r.advert},
	} {
		if kv[1] != "" {
			out = append(out, kv[0]+"="+kv[1])
		}
	}
	return out
}

// readTXT takes what is known of TXT strings. Keys are compared without regard to case and the first counts (RFC 6763,
// 6.4).
func (r *record) readTXT(texts []string) {
	seen := make(map[string]bool, len(texts))
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		key = strings.ToLower(key)
		if seen[key] {
			continue
		}
		seen[key] = true
		switch key {
		case keyFingerprint:
			r.fingerprint = value
		case keyNode:
			r.node = value
		case keyNonce:
			r.nonce = value
		case keyAdvert:
			r.advert = value
		}
	}
}

// Why a record is not used, beside being none of ours.
var (
	errNonce       = errors.New("the nonce is missing or malformed")
	errFingerprint = errors.New("the fingerprint is malformed")
	errNoTrust     = errors.New("there is neither a fingerprint nor a node")
	errNode        = errors.New("the node is not a URL of a relay")
	errPort        = errors.New("the port is zero")
)

// check refuses what cannot be used whoever wrote it.
func (r *record) check() error {
	switch {
	case r.port == 0:
		return errPort
	case !isHex(r.nonce, 32):
		return errNonce // it becomes a path
	case r.fingerprint != "" && !isHex(r.fingerprint, 64):
		return errFingerprint
	case r.fingerprint == "" && r.node == "":
		return errNoTrust // L1
	case r.node == "":
		return nil
	}
	_, _, err := r.nodeURL()
	return err
}

// nodeURL splits the node into the URL without query, and the price in the query if there is one. Any other parameter
// is dropped: nobody is to make us present a credential (L8).
func (r *record) nodeURL() (address string, cost *uint64, err error) {
	u, err := url.Parse(r.node)
	if err != nil || len(r.node) > maxNode || u.Host == "" || u.Opaque != "" || u.User != nil {
		return "", nil, errNode // the error of url quotes it
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		value, ok := strings.CutPrefix(part, "cost=")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 62)
		if err != nil || cost != nil {
			return "", nil, errNode
		}
		cost = &n
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = "", false, "", ""
	return u.String(), cost, nil
}

// isHex reports whether text is n lower-case hex digits.
func isHex(text string, n int) bool {
	return len(text) == n && strings.Trim(text, "0123456789abcdef") == ""
}

// isLabel reports whether text can be an instance name of a relay. Names that DNS would have to escape are none.
func isLabel(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return text != "" && len(text) <= 63
}

// CheckApp reports what is wrong with the name of an application: it is 1 to 62 of a-z, 0-9 and the dash.
func CheckApp(app string) error {
	if len(app) < 1 || len(app) > maxApp || strings.Contains(app, "_") || !isLabel(app) {
		return fmt.Errorf("not 1 to %d of a-z, 0-9 and -", maxApp)
	}
	return nil
}

// random draws n bytes as hex digits.
func random(source io.Reader, n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(source, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}
