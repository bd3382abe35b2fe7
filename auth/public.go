package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moqmesh/moqmesh/paths"
)

// Errors of public rules, for the configuration to report.
var (
	// ErrNoRules says that the rules admit nobody.
	ErrNoRules = errors.New("no public rule is given, so nobody could connect")
	// ErrNoWildcard says that a pattern matches a single path, which is hardly ever meant.
	ErrNoWildcard = errors.New("pattern has no wildcard")
)

// RuleError says which public pattern is not accepted.
type RuleError struct {
	Pattern string
	Err     error
}

func (e *RuleError) Error() string {
	if errors.Is(e.Err, ErrNoWildcard) {
		return fmt.Sprintf("%v: %q, write %q", e.Err, e.Pattern, paths.Join(strings.Trim(e.Pattern, "/"), "**"))
	}
	return e.Err.Error()
}

func (e *RuleError) Unwrap() error { return e.Err }

// PublicRules are patterns rooted at "/" (A6).
type PublicRules struct {
	Both      []string // granted for both directions
	Publish   []string
	Subscribe []string
}

// Public admits everybody below the configured patterns, without credentials. Its grants never expire.
type Public struct {
	publish, subscribe paths.Set
}

var _ Authorizer = (*Public)(nil)

// NewPublic checks the rules. It fails with ErrNoRules or a *RuleError.
func NewPublic(rules PublicRules) (*Public, error) {
	both, err := parseRules(rules.Both)
	if err != nil {
		return nil, err
	}
	publish, err := parseRules(rules.Publish)
	if err != nil {
		return nil, err
	}
	subscribe, err := parseRules(rules.Subscribe)
	if err != nil {
		return nil, err
	}
	p := &Public{
		publish:   paths.NewSet(append(publish, both...)...),
		subscribe: paths.NewSet(append(subscribe, both...)...),
	}
	if p.publish.Empty() && p.subscribe.Empty() {
		return nil, ErrNoRules
	}
	return p, nil
}

func parseRules(texts []string) ([]paths.Pattern, error) {
	out := make([]paths.Pattern, 0, len(texts))
	for _, text := range texts {
		p, err := paths.Parse(strings.Trim(text, "/"))
		if err == nil && p.Literal() {
			err = ErrNoWildcard
		}
		if err != nil {
			return nil, &RuleError{Pattern: text, Err: err}
		}
		out = append(out, p)
	}
	return out, nil
}

// Authorize grants what the rules match at and below the dialed path. It refuses where that is nothing, and whoever
// presents a credential (A7): nobody here could tell whether it is good.
func (p *Public) Authorize(_ context.Context, r Request) (Grant, error) {
	if r.Token() != "" || r.SetupToken != nil {
		return Grant{}, Refuse("a token was presented, but only public rules are configured")
	}
	root, err := paths.Clean(r.Path)
	if err != nil {
		return Grant{}, Refuse("path: %v", err)
	}
	below, err := paths.All.Rooted(root)
	if err != nil {
		return Grant{}, Refuse("path: %v", err)
	}
	g := Grant{Root: root}
	if g.Publish, err = p.publish.Intersect(below); err != nil {
		return Grant{}, Refuse("path: %v", err)
	}
	if g.Subscribe, err = p.subscribe.Intersect(below); err != nil {
		return Grant{}, Refuse("path: %v", err)
	}
	return g.For(r.Role)
}
