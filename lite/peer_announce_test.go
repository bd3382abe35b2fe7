package lite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// listening returns a session that asked for announcements below prefix, and its stream. The peer has answered with an
// empty set where the version has an answer.
func listening(t *testing.T, v message.Version, prefix string, o options) (*rig, *peertest.PeerStream) {
	t.Helper()
	o.interests = []string{prefix}
	r := accept(t, v, o).greet()
	s := r.wantAnnounceStream(prefix)
	switch {
	case v.HasAnnounceInit():
		s.Send(message.AnnounceInit{})
	case v.HasAnnounceOK():
		s.Send(message.AnnounceOK{Hop: peerHop})
	}
	return r, s
}

// started is how the host sees an announcement of name with hops [9 8], or as much as the version says.
func started(v message.Version, name string) string {
	switch {
	case v.HasHopCount():
		return fmt.Sprintf("announce %q hops [0 0]", name)
	case v.HasCost():
		return fmt.Sprintf("announce %q hops [9 8] from 7 cost 1/2", name)
	case v.HasAnnounceOK():
		return fmt.Sprintf("announce %q hops [9 8] from 7", name)
	case v.HasHops():
		return fmt.Sprintf("announce %q hops [9 8]", name)
	default:
		return fmt.Sprintf("announce %q hops []", name)
	}
}

func startOf(name string) message.Announce {
	return message.Announce{Suffix: name, HopCount: 2, Hops: []message.Hop{9, 8}, Warm: 1, Cold: 2}
}

// endOf ends an announcement by name, or by id on 06.
func endOf(name string, id uint64) message.Announce {
	return message.Announce{Kind: message.AnnounceEnd, Suffix: name, ID: id}
}

func TestAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "room", options{})
		s.Send(startOf("a"), startOf(""), startOf("b/c"))
		r.wantLog(started(v, "room/a"), started(v, "room"), started(v, "room/b/c"))
		s.Send(endOf("", 1), endOf("a", 0))
		r.wantLog("withdraw, explicit true", "withdraw, explicit true")
		s.Send(startOf("a"), endOf("a", 3)) // ids are never used again
		r.wantLog(started(v, "room/a"), "withdraw, explicit true")
		r.WantIdle()
	})
}

// ANNOUNCE_INIT is the initial set of 01 and 02.
func TestAnnounceInit(t *testing.T) {
	each(t, message.Lite01, message.Lite02, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{interests: []string{"room"}}).greet()
		s := r.wantAnnounceStream("room")
		s.Send(message.AnnounceInit{Suffixes: []string{"a", "b"}}, endOf("a", 0))
		r.wantLog(started(v, "room/a"), started(v, "room/b"), "withdraw, explicit true")
		s.Send(startOf("b"))
		r.WantClose(lite.SessionViolation)
	})
}

// On 05 a second active announcement, and the status 2 that nobody sends, replace the route in place.
func TestReannounce05(t *testing.T) {
	each(t, message.Lite05, message.Lite05, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{})
		s.Send(startOf("alice"), message.Announce{Suffix: "alice", Hops: []message.Hop{3}})
		r.wantLog(started(v, "alice"), `reannounce "alice" hops [3] from 7`)
		s.Send("09 02 05 616c696365 01 07", "08 02 03 626f62 02 09 08", endOf("alice", 0), endOf("bob", 0))
		r.wantLog(`reannounce "alice" hops [7] from 7`, started(v, "bob"), "withdraw, explicit true", "withdraw, explicit true")
		r.WantIdle()
	})
}

// moq-lite 5.6: every START takes an id, unknown types take none.
func TestAnnounceIDs06(t *testing.T) {
	each(t, message.Lite06, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{})
		s.Send(startOf("a"), "03 00", "3f 03 010203", startOf("b"))
		s.Send(message.Announce{Kind: message.AnnounceRestart, ID: 1, Hops: []message.Hop{3}, Warm: 5, Cold: 6})
		s.Send(endOf("", 1), message.Announce{Kind: message.AnnounceRestart, ID: 0, Hops: []message.Hop{4}})
		r.wantLog(
			started(v, "a"), started(v, "b"), `reannounce "b" hops [3] from 7 cost 5/6`, "withdraw, explicit true",
			`reannounce "a" hops [4] from 7`,
		)
		r.WantIdle()
	})
}

// What must never be announced keeps its place, and its id, but does not reach the host.
func TestDeclinedAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "room", options{})
		deep := strings.TrimSuffix(strings.Repeat("d/", 32), "/") // 33 segments with the prefix
		wild, err := message.AnnounceRequest{Prefix: "a/*"}.Append(nil, message.Lite06)
		if err != nil {
			t.Fatal(err)
		}
		s.Send(startOf(deep))
		switch body := wild[1:]; {
		case v.HasAnnounceIDs():
			s.Send("00 09", body, "02 09 08 01 02")
		case v.HasHopCount():
			s.Send("06 01", body, "02")
		case v.HasHops():
			s.Send("08 01", body, "02 09 08")
		default:
			s.Send("05 01", body)
		}
		s.Send(startOf("ok"), endOf(deep, 0), endOf("ok", 2))
		r.wantLog(started(v, "room/ok"), "withdraw, explicit true")
		r.WantIdle()
	})
}

// moq-lite 4.2: a FIN of the publisher withdraws what it announced there and keeps the session.
func TestEndOfAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{})
		s.Send(startOf("a")).FIN().AnyStop()
		r.wantLog(started(v, "a"), "withdraw, explicit false")
		s.WantEnd()
		r.WantIdle()
	})
}

// A reset by the publisher ends the session with 0x1.
func TestResetOfAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{})
		s.Send(startOf("a"))
		r.wantLog(started(v, "a"))
		s.Reset(1)
		r.WantClose(lite.SessionInternal)
		<-r.ended
		r.wantLog("withdraw, explicit false")
	})
}

// moq-lite 10: whatever is wrong on an ANNOUNCE stream that we opened ends the session with 0x3.
func TestBadAnnouncements(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, last message.Version
		parts       []any
	}{
		{"announced twice", 1, 4, []any{startOf("a"), startOf("a")}},
		{"announced twice", 6, 6, []any{startOf("a"), startOf("a")}},
		{"announced twice under one name", 1, 4, []any{startOf("a"), startOf("//a/")}},
		{"status 3", 1, 2, []any{"02 03 00"}},
		{"status 3", 3, 5, []any{"03 03 00 00"}},
		{"restart before 05", 1, 2, []any{startOf("a"), "03 02 01 61"}},
		{"restart before 05", 3, 4, []any{startOf("a"), "04 02 01 61 00"}},
		{"33 hops", 3, 3, []any{"03 01 00 21"}},
		{"33 hops", 4, 5, []any{"24 01 00 21 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021"}},
		{"33 hops", 6, 6, []any{"00 03 00 21 00"}},
		{"hop twice", 4, 5, []any{"05 01 00 02 07 07"}},
		{"hop twice", 6, 6, []any{"00 06 00 02 07 07 00 00"}},
		{"one cost", 6, 6, []any{"00 03 00 00 00"}},
		{"trailing byte", 1, 2, []any{"03 01 00 00"}},
		{"trailing byte", 3, 5, []any{"04 01 00 00 00"}},
		{"trailing byte", 6, 6, []any{"00 05 00 00 00 00 09"}},
		{"empty body", 1, 5, []any{"00"}},
		{"empty body", 6, 6, []any{"00 00"}},
		{"not UTF-8", 1, 2, []any{"03 01 01 ff"}},
		{"not UTF-8", 3, 5, []any{"04 01 01 ff 00"}},
		{"not UTF-8", 6, 6, []any{"00 05 01 ff 00 00 00"}},
		{"too large", 1, 5, []any{"84 00 00 01"}},
		{"too large", 6, 6, []any{"00 84 00 00 01"}},
		{"an unknown type too large", 6, 6, []any{"09 84 00 00 01"}},
		{"END of no id", 6, 6, []any{endOf("", 0)}},
		{"END of a later id", 6, 6, []any{startOf("a"), endOf("", 1)}},
		{"END twice", 6, 6, []any{startOf("a"), endOf("", 0), endOf("", 0)}},
		{"RESTART of no id", 6, 6, []any{message.Announce{Kind: message.AnnounceRestart}}},
		{"RESTART after END", 6, 6, []any{startOf("a"), endOf("", 0), message.Announce{Kind: message.AnnounceRestart}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, tt.first, tt.last, func(t *testing.T, v message.Version) {
				r, s := listening(t, v, "", options{})
				s.Send(tt.parts...)
				r.WantClose(lite.SessionViolation)
				<-r.ended
			})
		})
	}
}

// A publisher may not stop inside an announcement, nor begin with anything but the answer of its version.
func TestAnnouncementsOutOfOrder(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{})
		b, err := startOf("a").Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		s.Send(b[:len(b)-1]).FIN()
		r.WantClose(lite.SessionViolation)

		if v.HasAnnounceInit() || v.HasAnnounceOK() {
			r = accept(t, v, options{interests: []string{""}}).greet()
			wrong := startOf("a")
			if v.HasAnnounceInit() {
				wrong.Kind = message.AnnounceEnd // an active one with one name looks like an ANNOUNCE_INIT
			}
			r.wantAnnounceStream("").Send(wrong)
			r.WantClose(lite.SessionViolation)
		}
	})
}

// Announcements have a limit of ours; all streams count together.
func TestTooManyAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{cfg: lite.Config{Limits: lite.Limits{Announcements: 2}}})
		s.Send(startOf("a"), startOf("b"), endOf("a", 0), startOf("c"))
		r.wantLog(started(v, "a"), started(v, "b"), "withdraw, explicit true", started(v, "c"))
		r.WantIdle()
		s.Send(startOf("d"))
		r.WantClose(lite.SessionInternal)
	})
}

// A peer that said it only subscribes is not asked for announcements.
func TestNoAnnounceStreamToSubscribers(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{interests: []string{""}})
		r.Client(message.Setup{Role: message.RoleSubscriber})
		r.WantSetup()
		r.WantIdle()
	})
}

// After GOAWAY the session opens no more requests (moq-lite 5.15).
func TestNoAnnounceStreamAfterGoaway(t *testing.T) {
	each(t, message.Lite04, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := listening(t, v, "", options{})
		r.Open(message.StreamGoaway, message.Goaway{}).FIN().AnyStop().WantEnd()
		s.Send(startOf("a")) // what runs goes on
		r.wantLog(`goaway ""`, started(v, "a"))
		r.WantIdle()
	})
}

// initial is what the session announces at first in the tests below.
var initial = []session.Update{
	{Name: "room/a", Hops: []route.Hop{9}, Cost: route.Cost{Warm: 1, Cold: 2}},
	{Name: "room/b", Hops: []route.Hop{9, 8}, Cost: route.Cost{Warm: 3, Cold: 4}},
}

// listed is how an update is announced: 04 lists our own hop, 03 counts it.
func listed(v message.Version, u session.Update) message.Announce {
	m := message.Announce{Suffix: u.Name, HopCount: uint64(len(u.Hops)) + 1, Warm: u.Cost.Warm, Cold: u.Cost.Cold}
	for _, h := range u.Hops {
		m.Hops = append(m.Hops, message.Hop(h))
	}
	if v.HopsIncludeSender() {
		m.Hops = append(m.Hops, ourHop)
	}
	return m
}

func TestServedAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{initial: initial}).greet()
		s := r.Open(message.StreamAnnounce, message.AnnounceRequest{Prefix: "/x//", ExcludeHop: peerHop})
		switch {
		case v.HasAnnounceInit():
			s.Want(message.AnnounceInit{Suffixes: []string{"room/a", "room/b"}})
		case v.HasAnnounceOK():
			s.Want(message.AnnounceOK{Hop: ourHop, Active: 2})
		}
		if !v.HasAnnounceInit() {
			s.Want(listed(v, initial[0]), listed(v, initial[1]))
		}
		exclude := 0
		if v.HasExcludeHop() {
			exclude = peerHop
		}
		r.wantLog(fmt.Sprintf(`listen "x" exclude %d`, exclude))
		r.WantIdle()

		later := session.Update{Name: "c", Hops: []route.Hop{5}}
		r.tell(session.Update{Kind: session.UpdateGone, Name: "room/b"}, later)
		s.Want(endOf("room/b", 1), listed(v, later))
		if v.HasReannounce() {
			later.Kind, later.Hops = session.UpdateChange, []route.Hop{6}
			r.tell(later)
			m := listed(v, later)
			if v.HasAnnounceIDs() {
				m.Kind, m.ID = message.AnnounceRestart, 2
			}
			s.Want(m)
		}
		r.WantIdle()
	})
}

// moq-lite 12, item 6: nothing to announce is an empty set and an open stream.
func TestNothingToAnnounce(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		s := r.Open(message.StreamAnnounce, message.AnnounceRequest{Prefix: "x"})
		switch {
		case v.HasAnnounceInit():
			s.Want(message.AnnounceInit{})
		case v.HasAnnounceOK():
			s.Want(message.AnnounceOK{Hop: ourHop})
		}
		r.WantIdle()
	})
}

// Only the peer ends an ANNOUNCE stream: by FIN, by a reset or by another byte.
func TestEndOfServedAnnouncements(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*peertest.PeerStream)
		code uint64
	}{
		{"FIN", func(s *peertest.PeerStream) { s.FIN() }, lite.StreamCancelled},
		{"reset", func(s *peertest.PeerStream) { s.Reset(9) }, lite.StreamCancelled},
		{"another byte", func(s *peertest.PeerStream) { s.Send("00") }, lite.StreamMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{initial: initial}).greet()
				s := r.Open(message.StreamAnnounce, message.AnnounceRequest{}).AnyStop()
				r.WantAlive()
				tt.end(s)
				s.WantReset(tt.code)
				r.WantIdle()
				select {
				case <-r.host.feeds[0].closed:
				case <-time.After(time.Minute):
					t.Error("the feed was not closed")
				}
				if n, _ := r.Conn.Streams(); v.HasSetup() && n != 0 {
					t.Errorf("%d streams are left", n)
				}
			})
		})
	}
}

// A client that only publishes is told nothing.
func TestServedAnnouncementsToPublishers(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{initial: initial})
		r.Client(message.Setup{Role: message.RolePublisher})
		r.WantSetup()
		r.Open(message.StreamAnnounce, message.AnnounceRequest{}).Want(message.AnnounceOK{Hop: ourHop})
		r.WantIdle()
		r.wantLog()
	})
}

// moq-lite 2: a publisher on 06 answers once it knows the hop of the peer; on 05 the request has it.
func TestServedAnnouncementsBeforeSetup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := connect(t, v, options{})
		r.WantSetup()
		s := r.Open(message.StreamAnnounce, message.AnnounceRequest{})
		if v.HasExcludeHop() {
			s.Want(message.AnnounceOK{Hop: ourHop})
		}
		r.WantIdle()
		r.Server(message.Setup{})
		if !v.HasExcludeHop() {
			s.Want(message.AnnounceOK{Hop: ourHop})
		}
		r.WantIdle()
	})
}

// The number of ANNOUNCE streams is bounded.
func TestTooManyAnnounceStreams(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{cfg: lite.Config{Limits: lite.Limits{AnnounceStreams: 1}}}).greet()
		first := r.Open(message.StreamAnnounce, message.AnnounceRequest{}).AnyStop()
		r.WantAlive()
		r.Open(message.StreamAnnounce, message.AnnounceRequest{}).AnyStop().WantReset(lite.StreamNoCapacity)
		first.FIN().WantReset(lite.StreamCancelled)
		r.Open(message.StreamAnnounce, message.AnnounceRequest{})
		r.WantAlive()
	})
}
