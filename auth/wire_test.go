package auth_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/paths"
)

func pathSet(tb testing.TB, texts ...string) paths.Set {
	tb.Helper()
	s, err := paths.ParseSet(texts...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

var sameSet = cmp.Comparer(func(a, b paths.Set) bool { return a.Equal(b) })

// TestRequestVectors are those of auth 5.2, and one with everything.
func TestRequestVectors(t *testing.T) {
	for _, tt := range []struct {
		r    auth.Request
		end  *auth.End
		json string
	}{
		{
			auth.Request{ID: "00ff", Event: auth.EventConnect, Node: "relay-1", Transport: auth.TransportQUIC, Path: "/demo/room", SetupToken: &auth.SetupToken{Kind: 1, Value: []byte{0, 0xfb, 0xff}}},
			nil,
			`{"id":"00ff","event":"connect","node":"relay-1","transport":"quic","path":"/demo/room","token":{"kind":1,"value":"APv_"}}`,
		},
		{
			auth.Request{ID: "00ff", Event: auth.EventEnd, Node: "relay-1", Transport: "websocket", Remote: "203.0.113.9:4433", Path: "/demo/room", Query: "jwt=abc"},
			&auth.End{Reason: "expired", Duration: 1500 * time.Millisecond, Sent: 10, Received: 20},
			`{"id":"00ff","event":"end","reason":"expired","duration":1.5,"bytes":{"sent":10,"received":20},"node":"relay-1","transport":"websocket","remote":"203.0.113.9:4433","path":"/demo/room","query":"jwt=abc"}`,
		},
		{
			auth.Request{
				ID: "1", Event: auth.EventRevalidate, Transport: auth.TransportHTTP, Remote: "1.2.3.4:5", Local: "6.7.8.9:10", ServerName: "a.example",
				ALPN: "h3", Path: "/", Query: "a=<&>", Role: auth.RolePublisher,
				TLS: &auth.Identity{Name: "n", Fingerprint: "ab", Expires: time.Unix(5, 0), Issuer: "CN=ca"},
			},
			nil,
			`{"id":"1","event":"revalidate","node":"","transport":"http","remote":"1.2.3.4:5","local":"6.7.8.9:10","server_name":"a.example","alpn":"h3","path":"/","query":"a=<&>","role":"publisher","tls":{"name":"n","fingerprint":"ab","expires":5,"issuer":"CN=ca"}}`,
		},
		{
			auth.Request{ID: "1", Event: auth.EventEnd, Path: "/"},
			&auth.End{},
			`{"id":"1","event":"end","duration":0,"bytes":{"sent":0,"received":0},"node":"","transport":"","path":"/"}`,
		},
	} {
		if got := string(auth.EncodeRequest(tt.r, tt.end)); got != tt.json {
			t.Errorf("%s\nwant %s", got, tt.json)
		}
		r, end, err := auth.DecodeRequest([]byte(tt.json))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.r, r); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(tt.end, end); diff != "" {
			t.Error(diff)
		}
	}
	for _, bad := range []string{
		"", "null", "[]", `{}`, `{"id":"1"}`, `{"event":"connect"}`, `{"id":"1","event":"hello"}`, `{"id":1,"event":"connect"}`,
		`{"id":"1","event":"connect","token":{"kind":-1,"value":""}}`, `{"id":"1","event":"connect","token":{"kind":0,"value":"+"}}`,
		`{"id":"1","event":"connect","path":"/a","path":"/b"}`, `{"id":"1","event":"connect"}{}`,
	} {
		if r, _, err := auth.DecodeRequest([]byte(bad)); err == nil {
			t.Errorf("%s is %+v", bad, r)
		}
	}
}

func TestDecodeGrant(t *testing.T) {
	all := `"subscribe":["**"]`
	good := map[string]auth.Grant{
		`{"publish":["alice/**"],"subscribe":["**"],"root":"pid/room","expires":4102444800,"revalidate":60,"tier":"websocket","peer":true}`: {
			Root: "pid/room", Publish: pathSet(t, "pid/room/alice/**"), Subscribe: pathSet(t, "pid/room/**"),
			Expires: time.Unix(4102444800, 0), Revalidate: time.Minute, Tier: "websocket", Peer: true,
		},
		`{"subscribe":["**"],"mounts":{".svc":".svc/pid"}}`: {
			Root: "dialed", Subscribe: pathSet(t, "dialed/**"), Mounts: paths.Mounts{{At: "dialed/.svc", Target: ".svc/pid"}},
		},
		`{` + all + `,"root":"p","mounts":{"/b//x/":"/t/","a":"/t"}}`: {
			Root: "p", Subscribe: pathSet(t, "p/**"), Mounts: paths.Mounts{{At: "p/a", Target: "t"}, {At: "p/b/x", Target: "t"}},
		},
		`{` + all + `,"mounts":null}`:   {Root: "dialed", Subscribe: pathSet(t, "dialed/**")},
		`{` + all + `}`:                 {Root: "dialed", Subscribe: pathSet(t, "dialed/**")},
		`{` + all + `,"root":"/a//b/"}`: {Root: "a/b", Subscribe: pathSet(t, "a/b/**")},
		`{` + all + `,"root":""}`:       {Subscribe: pathSet(t, "**")},
		`{"publish":["/a/","a"],"subscribe":null,"root":null,"tier":null}`:     {Root: "dialed", Publish: pathSet(t, "dialed/a")},
		`{` + all + `,"expires":5.5,"revalidate":0.5,"mounts":{},"later":[1]}`: {Root: "dialed", Subscribe: pathSet(t, "dialed/**"), Expires: time.UnixMilli(5500), Revalidate: 500 * time.Millisecond},
		`{` + all + `,"expires":1e300,"revalidate":1e300}`:                     {Root: "dialed", Subscribe: pathSet(t, "dialed/**"), Expires: time.Unix(1<<40, 0), Revalidate: 365 * 24 * time.Hour},
	}
	for body, want := range good {
		g, err := auth.DecodeGrant([]byte(body), "/dialed/")
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, g, sameSet); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	for body, want := range map[string]error{
		``: auth.ErrUnavailable, `{`: auth.ErrUnavailable, `null`: auth.ErrUnavailable, `"x"`: auth.ErrUnavailable, `{"publish":[],"publish":["**"]}`: auth.ErrUnavailable,
		`{}`: auth.ErrRefused, `{"tier":"x"}`: auth.ErrRefused, `{"publish":[]}`: auth.ErrRefused, `{"Publish":["**"]}`: auth.ErrRefused,
		`{"publish":"**"}`: auth.ErrInvalid, `{"publish":[1]}`: auth.ErrInvalid, `{"publish":["**/**"]}`: auth.ErrInvalid, `{"publish":["a//b"]}`: auth.ErrInvalid,
		`{` + all + `,"root":1}`: auth.ErrInvalid, `{` + all + `,"root":"a*"}`: auth.ErrInvalid, `{` + all + `,"root":"` + strings.Repeat("a/", 33) + `"}`: auth.ErrInvalid,
		`{` + all + `,"expires":"1"}`: auth.ErrInvalid, `{` + all + `,"expires":-1}`: auth.ErrInvalid, `{` + all + `,"expires":1e999}`: auth.ErrInvalid,
		`{` + all + `,"revalidate":5}`: auth.ErrInvalid, `{` + all + `,"expires":9,"revalidate":0}`: auth.ErrInvalid, `{` + all + `,"expires":9,"revalidate":-1}`: auth.ErrInvalid,
		`{` + all + `,"tier":1}`: auth.ErrInvalid, `{` + all + `,"tier":"` + strings.Repeat("x", 129) + `"}`: auth.ErrInvalid, `{` + all + `,"peer":"true"}`: auth.ErrInvalid,
		`{` + all + `,"mounts":{"a":1}}`: auth.ErrInvalid, `{` + all + `,"mounts":[]}`: auth.ErrInvalid, `{` + all + `,"mounts":{"a":null}}`: auth.ErrInvalid,
		`{` + all + `,"mounts":{"a":"b","a":"c"}}`: auth.ErrInvalid, `{` + all + `,"mounts":{` + manyMounts(65) + `}}`: auth.ErrInvalid,
		`{` + all + `,"mounts":{"a":"t","a/b":"u"}}`: auth.ErrRefused, `{` + all + `,"mounts":{"a":"t","/a/":"t"}}`: auth.ErrRefused, // (A16)
		`{` + all + `,"mounts":{".a":"dialed/.z",".z":"secret"}}`: auth.ErrRefused, `{` + all + `,"mounts":{"*":".svc"}}`: auth.ErrRefused,
		`{` + all + `,"mounts":{"a":"dialed"}}`: auth.ErrRefused, `{` + all + `,"mounts":{"a":""}}`: auth.ErrRefused, `{` + all + `,"mounts":{"a":"t*"}}`: auth.ErrRefused,
		`{` + all + `,"mounts":{"` + strings.Repeat("a/", 32) + `":"t"}}`: auth.ErrRefused,
		`{"publish":["` + strings.Repeat(`a","`, 1024) + `a"]}`:           auth.ErrInvalid,
	} {
		if g, err := auth.DecodeGrant([]byte(body), "/dialed"); !errors.Is(err, want) {
			t.Errorf("%.80s: %+v, %v; want %v", body, g, err, want)
		}
	}
}

func manyMounts(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"m%d":"t"`, i))
	}
	return strings.Join(out, ",")
}

// TestGrantSurvives: what a server of ours writes, a relay of ours reads.
func TestGrantSurvives(t *testing.T) {
	for _, g := range []auth.Grant{
		{Root: "dialed", Publish: pathSet(t, "dialed/a/**", "dialed/b"), Expires: time.Unix(9, 0), Revalidate: 1500 * time.Millisecond, Tier: "<x>", Peer: true},
		{Root: "", Subscribe: pathSet(t, "a/*/c*d")},
		{Root: "other", Subscribe: pathSet(t, "other/**")},
		{Root: "other", Subscribe: pathSet(t, "other/**"), Mounts: paths.Mounts{{At: "other", Target: "t"}}},
		{Root: "dialed", Subscribe: pathSet(t, "dialed/**"), Mounts: paths.Mounts{{At: "dialed/a", Target: "t"}, {At: "dialed/b", Target: "t"}}},
	} {
		body := auth.EncodeGrant(g, "//dialed/")
		got, err := auth.DecodeGrant(body, "//dialed/")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(g, got, sameSet); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
		if strings.Contains(string(body), "root") != (g.Root != "dialed") {
			t.Errorf("%s", body)
		}
	}
}

// TestGrantAt: clocks differ by 5 s and no more (A10).
func TestGrantAt(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct{ expires, want float64 }{{1001, 1001}, {1000.5, 1000.5}, {1000, 1005}, {996, 1001}, {995.001, 1000.001}, {995, 0}, {0, 0}} {
		g, err := auth.Grant{Expires: time.UnixMicro(int64(tt.expires * 1e6))}.At(now)
		if tt.want == 0 {
			if !errors.Is(err, auth.ErrInvalid) {
				t.Errorf("%v: %v", tt.expires, err)
			}
		} else if err != nil || !g.Expires.Equal(time.UnixMicro(int64(tt.want*1e6))) {
			t.Errorf("%v: %v, %v", tt.expires, g.Expires, err)
		}
	}
	if _, err := (auth.Grant{}).At(now); err != nil {
		t.Error(err)
	}
	if _, err := (auth.Grant{Revalidate: 1}).At(now); !errors.Is(err, auth.ErrInvalid) {
		t.Error(err)
	}
}

// FuzzGrant: whatever an auth server says is one of the four outcomes; a grant stays below its root.
func FuzzGrant(f *testing.F) {
	f.Add([]byte(`{"publish":["alice/**"],"subscribe":["**"],"root":"pid/room","expires":4102444800,"revalidate":60,"tier":"x","peer":true}`), "/dialed")
	f.Add([]byte(`{"subscribe":["*","a*b/**/c"],"mounts":{}}`), "")
	f.Add([]byte(`{"subscribe":["**"],"mounts":{".svc":".svc/pid","a/b":"c"}}`), "/p")
	f.Fuzz(func(t *testing.T, body []byte, dialed string) {
		g, err := auth.DecodeGrant(body, dialed)
		if err != nil {
			if _, ok := errors.AsType[*auth.Error](err); !ok {
				t.Fatal(err)
			}
			return
		}
		below, err := paths.All.Rooted(g.Root)
		if err != nil || !below.Contains(g.Publish) || !below.Contains(g.Subscribe) || g.Publish.Empty() && g.Subscribe.Empty() || g.Revalidate < 0 {
			t.Fatalf("%+v, %v", g, err)
		}
		for _, m := range g.Mounts {
			if _, chained := g.Mounts.Over(m.Target); chained || !paths.Covers(g.Root, m.At) {
				t.Fatalf("mounts %v below %q", g.Mounts, g.Root)
			}
		}
		again, err := auth.DecodeGrant(auth.EncodeGrant(g, dialed), dialed)
		if err != nil || !again.Publish.Equal(g.Publish) || !again.Subscribe.Equal(g.Subscribe) || again.Root != g.Root ||
			!slices.Equal(again.Mounts, g.Mounts) {
			t.Fatalf("%+v became %+v, %v", g, again, err)
		}
	})
}

// FuzzRequest: whatever an auth server is asked is understood or refused.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":"00ff","event":"connect","node":"relay-1","transport":"quic","path":"/demo/room","token":{"kind":1,"value":"APv_"}}`))
	f.Add([]byte(`{"id":"00ff","event":"end","reason":"expired","duration":1.5,"bytes":{"sent":10,"received":20},"node":"","transport":"http","path":"/"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, end, err := auth.DecodeRequest(body)
		if err != nil {
			return
		}
		if (end != nil) != (r.Event == auth.EventEnd) {
			t.Fatalf("%+v, %v", r, end)
		}
		if end != nil {
			end.Duration = 0 // beyond what a duration holds
		}
		if _, _, err := auth.DecodeRequest(auth.EncodeRequest(r, end)); err != nil {
			t.Fatal(err)
		}
	})
}
