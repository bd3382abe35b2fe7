package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/internal/strictjson"
	"github.com/moqmesh/moqmesh/paths"
)

// Errors of claims.
var (
	// ErrClaims is wrapped by every error of claims that do not say what they must.
	ErrClaims = errors.New("bad claims")
	// ErrNothingGranted says that claims grant nothing at all, or nothing at the dialed path.
	ErrNothingGranted = errors.New("nothing is granted")
)

// Claims are what a token says. Publish and Subscribe are relative to Root, which is clean. Times are to the second;
// the zero time means that the claim is absent.
type Claims struct {
	Root               string
	Publish, Subscribe paths.Set

	Expires, NotBefore, Issued time.Time
}

// maxPatterns bounds what one claim may list: the grants of a session are looked at for every announcement.
const maxPatterns = 256

// latest is when tokens end that are to live longer still.
var latest = time.Unix(1<<40, 0)

func badClaims(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrClaims}, args...)...)
}

// parseClaims reads the claims of a token, or the ceiling of a key, which has the same members (auth 6.2). Unknown
// members are refused: one that we do not know may narrow what the others grant.
func parseClaims(text []byte) (Claims, error) {
	members, err := strictjson.Object(text)
	if err != nil {
		return Claims{}, badClaims("%w", err)
	}
	var c Claims
	legacy, named := false, false
	for name, raw := range members {
		if strictjson.IsNull(raw) {
			return Claims{}, badClaims("%.32q is null", name)
		}
		switch name {
		case "root":
			c.Root, err = parseRoot(raw)
		case "publish":
			named = true
			c.Publish, err = parsePatterns(raw)
		case "subscribe":
			named = true
			c.Subscribe, err = parsePatterns(raw)
		case "put":
			legacy = true
			c.Publish, err = parsePrefixes(raw)
		case "get":
			legacy = true
			c.Subscribe, err = parsePrefixes(raw)
		case "exp":
			c.Expires, err = parseTime(raw)
		case "nbf":
			c.NotBefore, err = parseTime(raw)
		case "iat":
			c.Issued, err = parseTime(raw)
		case "iss", "sub", "jti":
		default:
			return Claims{}, badClaims("%.32q is not supported", name)
		}
		if err != nil {
			return Claims{}, badClaims("%s: %w", name, err)
		}
	}
	switch {
	case legacy && named:
		return Claims{}, badClaims("put and get do not go with publish and subscribe")
	case c.Publish.Empty() && c.Subscribe.Empty():
		return Claims{}, ErrNothingGranted
	}
	return c, nil
}

func parseRoot(raw json.RawMessage) (string, error) {
	text, ok := strictjson.String(raw)
	if !ok {
		return "", errors.New("not text")
	}
	root, err := paths.Clean(text)
	if err == nil && strings.Contains(root, "*") {
		err = paths.ErrLiteral
	}
	return root, err
}

func parsePatterns(raw json.RawMessage) (paths.Set, error) {
	texts, ok := strictjson.Strings(raw)
	if !ok {
		return paths.Set{}, errors.New("not a list of text")
	}
	return patternsOf(texts, func(text string) (paths.Pattern, error) { return paths.Parse(text) })
}

// parsePrefixes reads the older form: one prefix or a list of them. Each stands for itself and everything below.
func parsePrefixes(raw json.RawMessage) (paths.Set, error) {
	texts, ok := strictjson.Strings(raw)
	if !ok {
		one, ok := strictjson.String(raw)
		if !ok {
			return paths.Set{}, errors.New("neither text nor a list of text")
		}
		texts = []string{one}
	}
	return patternsOf(texts, func(text string) (paths.Pattern, error) {
		if strings.Contains(text, "*") {
			return paths.Pattern{}, paths.ErrLiteral
		}
		return paths.Parse(paths.Join(text, "**"))
	})
}

// patternsOf parses a list. Slashes at the ends and repeated ones do not count.
func patternsOf(texts []string, parse func(string) (paths.Pattern, error)) (paths.Set, error) {
	if len(texts) > maxPatterns {
		return paths.Set{}, fmt.Errorf("more than %d patterns", maxPatterns)
	}
	out := make([]paths.Pattern, 0, len(texts))
	for _, text := range texts {
		text, err := paths.Clean(text)
		if err != nil {
			return paths.Set{}, err
		}
		p, err := parse(text)
		if err != nil {
			return paths.Set{}, err
		}
		out = append(out, p)
	}
	return paths.NewSet(out...), nil
}

// parseTime reads unix seconds, a fraction included. What is beyond reason is very long.
func parseTime(raw json.RawMessage) (time.Time, error) {
	f, ok := strictjson.Number(raw)
	if !ok {
		if len(raw) > 0 && raw[0] >= '0' && raw[0] <= '9' { // more than a float64 holds
			return latest, nil
		}
		return time.Time{}, errors.New("not a number")
	}
	limit := float64(latest.Unix())
	if f > limit {
		return latest, nil
	}
	if f < -limit {
		f = -limit
	}
	return time.UnixMilli(int64(f * 1000)), nil
}

// claimsJSON is what is written, in the order in which others write it.
type claimsJSON struct {
	Root      string   `json:"root"`
	Publish   []string `json:"publish,omitempty"`
	Subscribe []string `json:"subscribe,omitempty"`
	Put       []string `json:"put,omitempty"`
	Get       []string `json:"get,omitempty"`
	Exp       int64    `json:"exp,omitempty"`
	Nbf       int64    `json:"nbf,omitempty"`
	Iat       int64    `json:"iat,omitempty"`
}

// MarshalJSON writes the claims. Where every pattern is a path with everything below it, the older names are used,
// which every reader knows.
func (c Claims) MarshalJSON() ([]byte, error) {
	out := claimsJSON{Root: c.Root, Exp: seconds(c.Expires), Nbf: seconds(c.NotBefore), Iat: seconds(c.Issued)}
	put, simple := prefixes(c.Publish)
	get, alsoSimple := prefixes(c.Subscribe)
	if simple && alsoSimple {
		out.Put, out.Get = put, get
	} else {
		out.Publish, out.Subscribe = c.Publish.Strings(), c.Subscribe.Strings()
	}
	return json.Marshal(out)
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// prefixes writes a set in the older form. It reports false where that says something else.
func prefixes(s paths.Set) ([]string, bool) {
	out := s.Strings()
	for i, p := range out {
		prefix, ok := strings.CutSuffix("/"+p, "/**")
		if !ok || strings.Contains(prefix, "*") {
			return nil, false
		}
		out[i] = strings.TrimPrefix(prefix, "/")
	}
	return out, true
}

// absolute places both sets below the root.
func (c *Claims) absolute() (publish, subscribe paths.Set, err error) {
	if publish, err = c.Publish.Rooted(c.Root); err == nil {
		subscribe, err = c.Subscribe.Rooted(c.Root)
	}
	return publish, subscribe, err
}

// Within reports whether everything that c grants is granted by the ceiling, role by role. Times do not count.
func (c Claims) Within(ceiling Claims) bool {
	publish, subscribe, err := c.absolute()
	if err != nil {
		return false
	}
	mayPublish, maySubscribe, err := ceiling.absolute()
	return err == nil && mayPublish.Contains(publish) && maySubscribe.Contains(subscribe)
}

// At returns what the claims grant to a session at a dialed path (auth 6.3): absolute sets that lie at or below the
// path. It fails where that is nothing.
func (c Claims) At(path string) (publish, subscribe paths.Set, err error) {
	below, err := paths.All.Rooted(path)
	if err != nil {
		return paths.Set{}, paths.Set{}, err
	}
	if publish, subscribe, err = c.absolute(); err != nil {
		return paths.Set{}, paths.Set{}, err
	}
	if publish, err = publish.Intersect(below); err != nil {
		return paths.Set{}, paths.Set{}, err
	}
	if subscribe, err = subscribe.Intersect(below); err != nil {
		return paths.Set{}, paths.Set{}, err
	}
	if publish.Empty() && subscribe.Empty() {
		return paths.Set{}, paths.Set{}, ErrNothingGranted
	}
	return publish, subscribe, nil
}
