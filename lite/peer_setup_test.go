package lite_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
)

// wantHandshakeError wants the handshake to fail with err, and the session to be closed with code.
func (r *rig) wantHandshakeError(code uint32, want error) {
	r.t.Helper()
	r.WantClose(code)
	<-r.ended
	if r.err == nil || want != nil && !errors.Is(r.err, want) {
		r.t.Errorf("handshake: %v, want %v", r.err, want)
	}
}

func TestHandshake(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{})
		if v.HasSetup() {
			synctest.Wait()
			select {
			case <-r.ready:
				t.Fatal("the handshake did not wait for SETUP")
			default:
			}
		}
		r.greet().WantIdle()
		if got := r.up.Version(); got != v {
			t.Errorf("version is %v", got)
		}
		r = connect(t, v, options{})
		r.greet().WantIdle()
		if got := r.up.Version(); got != v {
			t.Errorf("version is %v", got)
		}
	})
}

// What a client says in SETUP is what the relay decides on.
func TestSetupOfTheClient(t *testing.T) {
	price := uint64(5)
	for name, tt := range map[string]struct {
		setup message.Setup
		want  lite.Peer
	}{
		"nothing":        {message.Setup{}, lite.Peer{}},
		"everything":     {message.Setup{Path: "/room/a?jwt=x?y", HasPath: true, Role: message.RolePublisher, Cost: 5, HasCost: true, Hop: 9}, lite.Peer{Path: "/room/a", Query: "jwt=x?y", Role: message.RolePublisher, Hop: 9, Price: &price}},
		"an empty path":  {message.Setup{HasPath: true}, lite.Peer{}},
		"only subscribe": {message.Setup{Role: message.RoleSubscriber}, lite.Peer{Role: message.RoleSubscriber}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{})
				r.Client(tt.setup)
				<-r.ready
				if diff := cmp.Diff(tt.want, r.up.Peer()); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// Our own SETUP names our hop, and as a client path, role and price.
func TestSetupOfTheSession(t *testing.T) {
	price := uint64(3)
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		cfg := lite.Config{Role: message.RoleSubscriber, Path: "/anon?jwt=abc", Price: &price}
		got := connect(t, v, options{cfg: cfg}).WantSetup()
		want := message.Setup{Probe: 1, Path: "/anon?jwt=abc", HasPath: true, Role: message.RoleSubscriber, Cost: 3, HasCost: true, Hop: ourHop}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("client (-want +got):\n%s", diff)
		}
		got = accept(t, v, options{cfg: cfg}).WantSetup()
		if diff := cmp.Diff(message.Setup{Probe: 1, Hop: ourHop}, got); diff != "" {
			t.Errorf("server (-want +got):\n%s", diff)
		}
	})
}

// moq-lite 2: a server does not serve before it has the client's SETUP, and skips what comes instead.
func TestStreamsBeforeSetup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{})
		r.WantSetup()
		early := r.Open(message.StreamAnnounce, message.AnnounceRequest{})
		r.OpenUni(message.UniGroup, message.Group{}).WantStop(0)
		r.WantIdle()
		r.Client(message.Setup{})
		early.Want(message.AnnounceOK{Hop: ourHop})
		r.WantIdle()
	})
}

func TestBadSetupEndsTheSession(t *testing.T) {
	for name, bytes := range map[string]string{
		"unknown stream type":      "02",
		"FIN inside a stream type": "40",
		"truncated":                "01 | 04 01 01",
		"empty body":               "01 | 00",
		"trailing byte":            "01 | 02 00 ff",
		"same parameter twice":     "01 | 05 02 00 00 00 00",
		"65 parameters":            "01 | 02 40 41",
		"path is not UTF-8":        "01 | 04 01 02 01 ff",
		"parameter too long":       "01 | 05 01 01 02 01 00",
		"only a type":              "01",
	} {
		t.Run(name, func(t *testing.T) {
			each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{})
				r.OpenUni(bytes).FIN()
				r.wantHandshakeError(lite.SessionViolation, nil)
			})
		})
	}
}

// A SETUP above its limit is refused by its length, before the rest arrives.
func TestLargeSetup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{})
		r.OpenUni("01 | 80 01 00 01")
		r.wantHandshakeError(lite.SessionViolation, nil)
	})
}

// A bad SETUP of a server ends the session too.
func TestBadSetupOfTheServer(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := connect(t, v, options{})
		r.OpenUni("01 | 05 02 00 00 00 00").FIN()
		r.WantClose(lite.SessionViolation)
	})
}

func TestSecondSetupEndsTheSession(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		for _, begin := range []func(*testing.T, message.Version, options) *rig{accept, connect} {
			r := begin(t, v, options{}).greet()
			r.OpenUni(message.UniSetup, message.Setup{}).FIN()
			r.WantClose(lite.SessionViolation)
		}
	})
}

// A client that stays silent is not waited for.
func TestHandshakeTimeout(t *testing.T) {
	for _, v := range []message.Version{message.Lite01, message.Lite02, message.Lite05, message.Lite06} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			r := accept(t, v, options{cfg: lite.Config{HandshakeTimeout: 3 * time.Second}})
			r.wantHandshakeError(lite.SessionControlTimeout, nil)
			if d := time.Since(begin); d != 3*time.Second {
				t.Errorf("%v: closed after %v", v, d)
			}
		})
	}
}

// moq-lite 1.4: the client's order decides, what we do not speak is skipped, parameters are ignored.
func TestInbandNegotiation(t *testing.T) {
	const moqt14 = 0xff00000e
	params := []message.Param{{ID: 1, Bytes: []byte("/ignored")}, {ID: 2, Value: 100}, {ID: 0x40b5a, Value: 1}}
	for _, tt := range []struct {
		name    string
		offered []uint64
		ours    []message.Version
		want    message.Version
	}{
		{"as the reference", []uint64{message.Lite02.Code(), message.Lite01.Code(), moqt14}, nil, message.Lite02},
		{"client prefers 01", []uint64{moqt14, message.Lite01.Code(), message.Lite02.Code()}, nil, message.Lite01},
		{"we speak 01 only", []uint64{message.Lite02.Code(), message.Lite01.Code()}, []message.Version{message.Lite06, message.Lite01}, message.Lite01},
		{"later versions are not negotiated in band", []uint64{message.Lite06.Code(), message.Lite01.Code()}, nil, message.Lite01},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, token := range []string{"", "moql"} {
				synctest.Test(t, func(t *testing.T) {
					o := options{cfg: lite.Config{Versions: tt.ours}}
					if o.cfg.Versions == nil {
						o.cfg.Versions = []message.Version{1, 2, 3, 4, 5, 6}
					}
					o.pair.Client.Protocol = token
					client, server := peertest.Pair(o.pair)
					r := start(t, tt.want, o, client, server, lite.Accept)
					r.Open(message.ClientSetup{Versions: tt.offered, Params: params}).Want(message.ServerSetup{Version: tt.want.Code()})
					<-r.ready
					if got := r.up.Version(); got != tt.want {
						t.Errorf("version is %v", got)
					}
					if p := r.up.Peer(); p.Path != "" {
						t.Errorf("path is %q", p.Path)
					}
					r.WantIdle()
				})
			}
		})
	}
}

func TestInbandNegotiationFails(t *testing.T) {
	each(t, message.Lite01, message.Lite02, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{})
		r.Open(message.ClientSetup{Versions: []uint64{0xff00000e, message.Lite06.Code()}})
		r.wantHandshakeError(lite.SessionNoVersion, lite.ErrNoVersion)

		r = connect(t, v, options{})
		s := r.WantStream(message.ClientSetup{Versions: []uint64{v.Code()}})
		s.Send(message.ServerSetup{Version: message.Lite06.Code()})
		r.wantHandshakeError(lite.SessionNoVersion, lite.ErrNoVersion)
	})
	synctest.Test(t, func(t *testing.T) {
		r := accept(t, message.Lite05, options{cfg: lite.Config{Versions: []message.Version{message.Lite06}}})
		r.wantHandshakeError(lite.SessionNoVersion, lite.ErrNoVersion)
	})
}

func TestBadInbandSetup(t *testing.T) {
	for name, bytes := range map[string]string{
		"another stream":          "01 | 01 00",
		"SERVER_SETUP":            "21 0009 c0000000ff0dad01 00",
		"truncated":               "20 000a 01 c0000000ff0dad01",
		"trailing byte":           "20 000b 01 c0000000ff0dad01 00 00",
		"fewer versions":          "20 000a 02 c0000000ff0dad01 00",
		"nothing":                 "",
		"versions without number": "20 0008 ffffffffffffffff",
	} {
		t.Run(name, func(t *testing.T) {
			each(t, message.Lite01, message.Lite02, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{})
				r.Open(bytes).FIN()
				r.wantHandshakeError(lite.SessionViolation, nil)
			})
		})
	}
}

// moq-lite 4.2: the session stream of 01 and 02 must stay open.
func TestEndOfTheSessionStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*peertest.PeerStream)
		code uint32
	}{
		{"FIN", func(s *peertest.PeerStream) { s.FIN() }, lite.SessionNoError},
		{"reset", func(s *peertest.PeerStream) { s.Reset(1) }, lite.SessionNoError},
		{"FIN inside a message", func(s *peertest.PeerStream) { s.Send("02 01").FIN() }, lite.SessionViolation},
		{"malformed", func(s *peertest.PeerStream) { s.Send("02 01 01") }, lite.SessionViolation},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite01, message.Lite02, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{})
				s := r.Client(message.Setup{})
				s.Send(message.SessionInfo{Bitrate: 1_000_000}, message.SessionInfo{})
				r.WantIdle()
				tt.end(s)
				r.WantClose(tt.code)

				r = connect(t, v, options{})
				s = r.Server(message.Setup{})
				<-r.ready
				tt.end(s)
				r.WantClose(tt.code)
			})
		})
	}
}

// A path that a client has no use for is not sent (moq-lite 1.5).
func TestNoPathParameter(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		if m := connect(t, v, options{}).WantSetup(); m.HasPath {
			t.Errorf("path %q", m.Path)
		}
	})
}

func TestTokens(t *testing.T) {
	want := "moq-lite-06 moq-lite-05 moq-lite-04 moq-lite-03 moql"
	if got := strings.Join(lite.Tokens(nil), " "); got != want {
		t.Errorf("tokens are %s, want %s", got, want)
	}
	if got := strings.Join(lite.Tokens([]message.Version{message.Lite01, message.Lite05}), " "); got != "moq-lite-05 moql" {
		t.Errorf("tokens are %s", got)
	}
	for token, want := range map[string]bool{
		"": true, "moql": true, "moq-lite-03": true, "moq-lite-06": true,
		"moq-lite-06-wip": false, "moq-lite-07-wip": false, "moq-lite-01": false, "moq-00": false, "h3": false,
	} {
		if lite.Speaks(token) != want {
			t.Errorf("speaks %q: %v", token, !want)
		}
	}
}
