package lite_test

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
)

// moq-lite 4.1: types that are unknown, or that a version does not have, are refused and never fatal.
func TestUnknownStreamTypes(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		for _, typ := range []message.StreamType{0, 1, 2, 3, 4, 5, 6, 7, 0x20, 0x21, 1<<62 - 1} {
			if v.HasStream(typ) {
				continue
			}
			code := lite.StreamCancelled
			if typ == message.StreamProbe {
				code = lite.StreamInternal
			}
			r.Open(typ, "01 00").AnyStop().WantReset(code)
		}
		for _, typ := range []message.UniType{1, 2, 3, 1<<62 - 1} {
			if !v.HasUniStream(typ) {
				r.OpenUni(typ, "01 00").WantStop(lite.StreamCancelled)
			}
		}
		r.WantIdle()
		r.wantLog()
	})
}

// A stream that says nothing is given up, and so is one that ends inside its type.
func TestStreamsWithoutType(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{cfg: lite.Config{RequestTimeout: peertest.Patience / 2}}).greet()
		r.Open().FIN().AnyStop().WantReset(lite.StreamCancelled)
		r.Open("40").FIN().AnyStop().WantReset(lite.StreamCancelled)
		r.Open("40").AnyStop().WantReset(lite.StreamCancelled) // after the time for requests
		r.OpenUni().FIN().AnyStop()
		r.OpenUni("40").FIN().AnyStop()
		r.OpenUni("00").Reset(5)
		r.WantIdle()
	})
}

// requests are the streams that a peer opens with one message. SUBSCRIBE is for a track that there is not.
func requests(v message.Version) map[message.StreamType]message.Encoder {
	all := map[message.StreamType]message.Encoder{
		message.StreamAnnounce:  message.AnnounceRequest{Prefix: "room"},
		message.StreamSubscribe: message.Subscribe{Broadcast: "room/alice", Track: "video"},
		message.StreamFetch:     message.Fetch{Broadcast: "room/alice", Track: "video"},
		message.StreamGoaway:    message.Goaway{URI: "https://example.com"},
		message.StreamTrack:     message.Track{Broadcast: "room/alice", Track: "video"},
	}
	for typ := range all {
		if !v.HasStream(typ) {
			delete(all, typ)
		}
	}
	return all
}

// moq-lite 4.2: a request that cannot be decoded is reset with 0x1 and the session goes on.
func TestUndecodableRequests(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		for typ, m := range requests(v) {
			good, err := m.Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			short := append([]byte{good[0] - 1}, good[1:len(good)-1]...)
			long := append([]byte{good[0] + 1}, append(good[1:], 0)...)
			if typ == message.StreamGoaway { // a second stream ends the session: see TestBadGoaway
				continue
			}
			r.Open(typ, short).AnyStop().WantReset(lite.StreamCancelled)
			r.Open(typ, long).AnyStop().WantReset(lite.StreamCancelled)
			r.Open(typ, good[:len(good)-1]).FIN().AnyStop().WantReset(lite.StreamCancelled)
			r.Open(typ).FIN().AnyStop().WantReset(lite.StreamCancelled)
			r.Open(typ, "84 00 00 01").AnyStop().WantReset(lite.StreamCancelled) // by its length alone
			r.Open(typ, "ff ff ff ff ff ff ff ff").AnyStop().WantReset(lite.StreamCancelled)
			r.Open(typ, good[:1]).Reset(9).AnyStop().WantReset(lite.StreamCancelled)
		}
		r.WantIdle()
		r.wantLog()
	})
}

// A peer that does not complete its request is not waited for.
func TestSlowRequests(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{cfg: lite.Config{RequestTimeout: peertest.Patience / 2}}).greet()
		for typ := range requests(v) {
			r.Open(typ, "05 01").AnyStop().WantReset(lite.StreamCancelled)
		}
		r.WantIdle()
	})
}

// moq-lite 4.2: a FIN cancels FETCH and TRACK that are not answered yet; another byte is malformed.
func TestRequestsThatEndEarly(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*peertest.PeerStream)
		code uint64
	}{
		{"FIN", func(s *peertest.PeerStream) { s.FIN() }, lite.StreamCancelled},
		{"reset", func(s *peertest.PeerStream) { s.Reset(9) }, lite.StreamCancelled},
		{"stop", func(s *peertest.PeerStream) { s.Stop(1).FIN() }, 0},
		{"another byte", func(s *peertest.PeerStream) { s.Send("00") }, lite.StreamMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{}).greet()
				r.host.hang = true
				for _, typ := range []message.StreamType{message.StreamFetch, message.StreamTrack} {
					s := r.Open(typ, requests(v)[typ]).AnyStop()
					r.WantIdle()
					tt.end(s)
					if tt.code != 0 {
						s.WantReset(tt.code)
					}
				}
				r.WantIdle()
				if n, _ := r.Conn.Streams(); n != 0 {
					t.Errorf("%d streams are left", n)
				}
			})
		})
	}
}

// Refusals carry the reason (moq-lite 7.2).
func TestRefusedRequests(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code uint64
	}{
		{session.ErrUnroutable, lite.StreamUnroutable},
		{session.ErrNotFound, lite.StreamNotFound},
		{session.ErrUnauthorized, lite.StreamUnroutable},
		{session.ErrGoingAway, lite.StreamGoingAway},
		{session.ErrTimeout, lite.StreamControlTimeout},
		{session.ErrNoCapacity, lite.StreamNoCapacity},
		{&lite.RequestError{Code: 567}, 567},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{}).greet()
				r.host.refuse = tt.err
				for typ, m := range requests(v) {
					if typ != message.StreamAnnounce && typ != message.StreamGoaway {
						r.Open(typ, m).AnyStop().WantReset(tt.code)
					}
				}
				r.WantIdle()
			})
		})
	}
}

// moq-lite 4.2 and 5.15: the first GOAWAY is passed on, a second one ends the session.
func TestGoaway(t *testing.T) {
	each(t, message.Lite04, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.Open(message.StreamGoaway, message.Goaway{URI: "https://b.example/?jwt=x"}).FIN().AnyStop().WantEnd()
		r.WantIdle()
		r.wantLog(`goaway "https://b.example/?jwt=x"`)
		r.Open(message.StreamGoaway, message.Goaway{}).FIN()
		r.WantClose(lite.SessionViolation)
		r.wantLog()
	})
}

// An undecodable GOAWAY is reset and changes nothing.
func TestBadGoaway(t *testing.T) {
	each(t, message.Lite04, message.Lite06, func(t *testing.T, v message.Version) {
		for _, bytes := range []string{"60 03", "02 01 ff", "03 01 61 00", "01 02"} {
			r := accept(t, v, options{}).greet()
			begin := time.Now()
			r.Open(message.StreamGoaway, bytes).AnyStop().WantReset(lite.StreamCancelled)
			if d := time.Since(begin); d != 0 {
				t.Errorf("%s was waited for: %v", bytes, d)
			}
			r.WantIdle()
			r.wantLog()
		}
	})
}

// A reference peer resets PROBE if anything follows the type.
func TestProbeWithContent(t *testing.T) {
	each(t, message.Lite03, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.Open(message.StreamProbe, message.Probe{Bitrate: 1}).AnyStop().WantReset(lite.StreamMalformed)
		s := r.Open(message.StreamProbe).AnyStop()
		r.WantIdle() // nothing is known of the path
		s.FIN().WantReset(lite.StreamCancelled)
		r.WantIdle()
	})
}

// moq-lite 5.13: what is wrong with a datagram concerns nobody.
func TestBadDatagrams(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		for _, bytes := range []string{"", "40", "07", "07 2a", "07 2a 43", "07 2a 43e8 aabb"} {
			r.SendDatagram(bytes)
		}
		r.WantIdle()
		r.wantLog()
	})
}

// A group that nobody subscribed to is stopped with 0x1 (moq-lite 4.3). One that cannot be decoded is stopped, too.
func TestUnwantedGroups(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.OpenUni(message.UniGroup, message.Group{Subscribe: 3, Sequence: 9}).WantStop(lite.StreamCancelled)
		r.OpenUni(message.UniGroup, "04 00 00 00 00").WantStop(lite.StreamMalformed)
		r.OpenUni(message.UniGroup, "84 00 00 01").WantStop(lite.StreamMalformed)
		r.OpenUni(message.UniGroup, "02 00").FIN().AnyStop()
		r.WantIdle()
	})
}
