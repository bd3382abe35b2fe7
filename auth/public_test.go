package auth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/paths"
	"pgregory.net/rapid"
)

func public(t *testing.T, rules auth.PublicRules) *auth.Public {
	t.Helper()
	p, err := auth.NewPublic(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type granted struct{ Root, Publish, Subscribe string }

// TestPublic: A6 to A8, T1 to T3, and the names of faults 8.
func TestPublic(t *testing.T) {
	both := func(p ...string) auth.PublicRules { return auth.PublicRules{Both: p} }
	tests := map[string]struct {
		rules auth.PublicRules
		path  string
		query string
		role  auth.Role
		want  granted // zero = refused
	}{
		"root":                         {both("anon/**"), "/", "", "", granted{"", "anon/**", "anon/**"}},
		"empty path":                   {both("anon/**"), "", "", "", granted{"", "anon/**", "anon/**"}},
		"at the pattern":               {both("anon/**"), "/anon", "", "", granted{"anon", "anon/**", "anon/**"}},
		"below (T1)":                   {both("anon/**"), "/anon/room", "", "", granted{"anon/room", "anon/room/**", "anon/room/**"}},
		"slashes do not count":         {both("/anon/**/"), "//anon///room/", "", "", granted{"anon/room", "anon/room/**", "anon/room/**"}},
		"elsewhere (T2)":               {both("anon/**"), "/other", "", "", granted{}},
		"a longer segment":             {both("demo/**"), "/demo2", "", "", granted{}},
		"a shorter segment":            {both("demo/**"), "/dem", "", "", granted{}},
		"another case":                 {both("demo/**"), "/Demo", "", "", granted{}},
		"dots are names":               {both("demo/**"), "/demo/../other", "", "", granted{"demo/../other", "demo/../other/**", "demo/../other/**"}},
		"everything":                   {both("**"), "/x", "", "", granted{"x", "x/**", "x/**"}},
		"one segment":                  {both("*"), "/", "", "", granted{"", "*", "*"}},
		"one segment, dialed at it":    {both("*"), "/x", "", "", granted{"x", "x", "x"}},
		"one segment, dialed below":    {both("*"), "/x/y", "", "", granted{}},
		"deep tail":                    {both("**/cam"), "/cam", "", "", granted{"cam", "cam/**/cam,cam", "cam/**/cam,cam"}},
		"publish only":                 {auth.PublicRules{Publish: []string{"in/**"}}, "/", "", "", granted{"", "in/**", ""}},
		"subscribe only":               {auth.PublicRules{Subscribe: []string{"out/**"}}, "/", "", "", granted{"", "", "out/**"}},
		"directions add up":            {auth.PublicRules{Both: []string{"x/**"}, Publish: []string{"in/**"}, Subscribe: []string{"**"}}, "/", "", "", granted{"", "in/**,x/**", "**"}},
		"one direction at the path":    {auth.PublicRules{Publish: []string{"in/**"}, Subscribe: []string{"**"}}, "/out", "", "", granted{"out", "", "out/**"}},
		"token (T3)":                   {both("anon/**"), "/anon", "jwt=x", "", granted{}},
		"empty token (T3)":             {both("anon/**"), "/anon", "jwt=", "", granted{"anon", "anon/**", "anon/**"}},
		"other parameters":             {both("anon/**"), "/anon", "x=1&jwtx=2&xjwt=3&jwt", "", granted{"anon", "anon/**", "anon/**"}},
		"token among others":           {both("anon/**"), "/anon", "x=1&jwt=y&z", "", granted{}},
		"token before an empty one":    {both("anon/**"), "/anon", "jwt=y&jwt=", "", granted{}},
		"publisher":                    {both("**"), "/", "", auth.RolePublisher, granted{"", "**", ""}},
		"subscriber":                   {both("**"), "/", "", auth.RoleSubscriber, granted{"", "", "**"}},
		"publisher, nothing (T10)":     {auth.PublicRules{Subscribe: []string{"**"}}, "/", "", auth.RolePublisher, granted{}},
		"subscriber, nothing":          {auth.PublicRules{Publish: []string{"**"}}, "/", "", auth.RoleSubscriber, granted{}},
		"unknown role":                 {both("**"), "/", "", "admin", granted{}},
		"32 segments":                  {both("**"), strings.Repeat("/a", 32), "", "", granted{strings.Repeat("a/", 31) + "a", strings.Repeat("a/", 31) + "a", strings.Repeat("a/", 31) + "a"}},
		"32 segments, pattern too far": {both("**/cam"), strings.Repeat("/a", 32), "", "", granted{}},
		"33 segments":                  {both("**"), strings.Repeat("/a", 33), "", "", granted{}},
		"a star is no name":            {both("**"), "/a*", "", "", granted{}},
		"bad UTF-8":                    {both("**"), "/\xff", "", "", granted{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := auth.Request{Transport: auth.TransportQUIC, Path: tt.path, Query: tt.query, Role: tt.role}
			g, err := public(t, tt.rules).Authorize(t.Context(), r)
			if tt.want == (granted{}) {
				checkRefused(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, granted{g.Root, g.Publish.String(), g.Subscribe.String()}); diff != "" {
				t.Error(diff)
			}
			if !g.Expires.IsZero() || g.Tier != "" || g.Peer {
				t.Errorf("grant %+v, want no end, tier or peer (A8)", g)
			}
		})
	}
}

func checkRefused(t *testing.T, err error) {
	t.Helper()
	var e *auth.Error
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized || !errors.Is(err, auth.ErrRefused) || errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("error %v, want a refusal", err)
	}
}

// TestPublicAgainstRules: whatever path is dialed, a name below it is granted iff a rule matches the whole name.
func TestPublicAgainstRules(t *testing.T) {
	pattern := rapid.StringMatching(`(a|b|\*|a\*)(/(a|b|\*))?(/\*\*)?(/(a|b))?`)
	rapid.Check(t, func(t *rapid.T) {
		text := pattern.Draw(t, "pattern")
		if !strings.Contains(text, "*") {
			text += "/**"
		}
		p, err := auth.NewPublic(auth.PublicRules{Subscribe: []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		name := rapid.StringMatching(`(a|b|c|ab)(/(a|b)){0,4}`).Draw(t, "name")
		root := name[:rapid.SampledFrom(ends(name)).Draw(t, "root")]
		rule, err := paths.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		g, err := p.Authorize(context.Background(), auth.Request{Path: "/" + root})
		if got, want := err == nil && g.Subscribe.Match(name), rule.Match(name); got != want {
			t.Fatalf("%q with rule %s dialed at %q: granted %v, want %v (%v)", name, text, root, got, want, err)
		}
		if err == nil && !g.Publish.Empty() {
			t.Fatal("publishing is granted")
		}
	})
}

// ends lists where the segments of a path end, and 0.
func ends(path string) []int {
	out := []int{0, len(path)}
	for i := range len(path) {
		if path[i] == '/' {
			out = append(out, i)
		}
	}
	return out
}

func TestNewPublicRefuses(t *testing.T) {
	tests := map[string]struct {
		rules auth.PublicRules
		err   error
		says  string
	}{
		"nothing":             {auth.PublicRules{}, auth.ErrNoRules, ""},
		"empty lists":         {auth.PublicRules{Both: []string{}, Publish: []string{}}, auth.ErrNoRules, ""},
		"no wildcard":         {auth.PublicRules{Both: []string{"anon"}}, auth.ErrNoWildcard, `write "anon/**"`},
		"no wildcard, slash":  {auth.PublicRules{Publish: []string{"/anon/room/"}}, auth.ErrNoWildcard, `write "anon/room/**"`},
		"empty pattern":       {auth.PublicRules{Subscribe: []string{""}}, auth.ErrNoWildcard, `write "**"`},
		"slash":               {auth.PublicRules{Subscribe: []string{"/"}}, auth.ErrNoWildcard, `write "**"`},
		"two stars":           {auth.PublicRules{Both: []string{"a*b*"}}, paths.ErrStar, `"a*b*"`},
		"empty segment":       {auth.PublicRules{Both: []string{"a//**"}}, paths.ErrEmptySegment, `"a//**"`},
		"one bad among three": {auth.PublicRules{Both: []string{"a/**", "b", "c/**"}}, auth.ErrNoWildcard, `"b"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := auth.NewPublic(tt.rules)
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v saying %s", err, tt.err, tt.says)
			}
		})
	}
}
