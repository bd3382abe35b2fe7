package auth_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/paths"
)

func TestToken(t *testing.T) {
	tests := map[string]string{
		"":                 "",
		"jwt=":             "",
		"jwt":              "",
		"jwt=a":            "a",
		"x=1&jwt=a&y":      "a",
		"jwt=a&jwt=b":      "b",
		"jwt=a&jwt=":       "a",
		"jwt=%41=":         "%41=",
		"JWT=a":            "",
		"%6awt=a":          "",
		"xjwt=a&jwtx=b":    "",
		"jwt=a%26jwt=b&&":  "a%26jwt=b",
		"jwt=a.b-c_d&x=jw": "a.b-c_d",
	}
	for query, want := range tests {
		if got := (auth.Request{Query: query}).Token(); got != want {
			t.Errorf("%q: token %q, want %q", query, got, want)
		}
	}
}

// TestRequestPrintsNoSecrets looks at every way to print a request (faults 6).
func TestRequestPrintsNoSecrets(t *testing.T) {
	r := auth.Request{Transport: auth.TransportHTTP, Remote: "192.0.2.1:9", Path: "/room", Query: "jwt=SECRET", Role: auth.RolePublisher}
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("refused", "request", r)
	fmt.Fprintf(&out, "%v %+v %#v %s", r, r, r, r)
	if text := out.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "192.0.2.1:9") {
		t.Error(text)
	}
}

func TestErrorsTellRefusalFromOutage(t *testing.T) {
	for status, refused := range map[int]bool{401: true, 403: true, 400: false, 500: false, 502: false, 0: false} {
		err := error(&auth.Error{Status: status, Reason: "because"})
		if errors.Is(err, auth.ErrRefused) != refused || errors.Is(err, auth.ErrUnavailable) == refused || !strings.Contains(err.Error(), "because") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestGrantFor holds the table of roles against every kind of grant (A15).
func TestGrantFor(t *testing.T) {
	none := paths.Set{}
	for _, publish := range []paths.Set{none, paths.All} {
		for _, subscribe := range []paths.Set{none, paths.All} {
			for _, role := range []auth.Role{auth.RoleBoth, auth.RolePublisher, auth.RoleSubscriber} {
				g, err := auth.Grant{Root: "r", Publish: publish, Subscribe: subscribe, Tier: "t", Peer: true}.For(role)
				wantPublish := !publish.Empty() && role != auth.RoleSubscriber
				wantSubscribe := !subscribe.Empty() && role != auth.RolePublisher
				if !wantPublish && !wantSubscribe {
					checkRefused(t, err)
					continue
				}
				if err != nil || g.Publish.Empty() == wantPublish || g.Subscribe.Empty() == wantSubscribe || g.Root != "r" || g.Tier != "t" || !g.Peer {
					t.Errorf("publish %q, subscribe %q, role %q: %+v, %v", publish, subscribe, role, g, err)
				}
			}
		}
	}
}
