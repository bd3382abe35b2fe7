package peertest_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite/message"
)

// verdict records how a test ends.
type verdict struct {
	testing.TB
	failure string
}

func (v *verdict) Helper()           {}
func (v *verdict) Fatal(args ...any) { v.Fatalf("%s", fmt.Sprint(args...)) }
func (v *verdict) Fatalf(format string, args ...any) {
	v.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// play runs a script against a session that does what act says, and returns how the script failed.
func play(t *testing.T, act func(*peertest.Peer), script func(*peertest.Peer)) string {
	t.Helper()
	v := &verdict{TB: t}
	synctest.Test(t, func(t *testing.T) {
		v.TB = t
		client, server := peertest.Pair(peertest.Options{})
		defer client.Close(0, "")
		act(peertest.NewPeer(t, server, message.Lite06))
		done := make(chan struct{})
		go func() {
			defer close(done)
			script(peertest.NewPeer(v, client, message.Lite06))
		}()
		<-done
	})
	return v.failure
}

// A Peer accepts exactly what was wanted. Each script is wrong for the session of another row.
func TestPeer(t *testing.T) {
	rows := []struct {
		name   string
		act    func(*peertest.Peer)
		script func(*peertest.Peer)
	}{
		{"nothing", func(*peertest.Peer) {}, func(p *peertest.Peer) { p.WantIdle() }},
		{
			"a stream", func(s *peertest.Peer) { s.Open(message.StreamAnnounce, message.AnnounceRequest{Prefix: "a"}) },
			func(p *peertest.Peer) { p.WantStream("01 | 02 01 61"); p.WantIdle() },
		},
		{
			"another stream", func(s *peertest.Peer) { s.Open("0102 0162") },
			func(p *peertest.Peer) { p.WantStream([]byte{1, 2, 1, 'b'}); p.WantIdle() },
		},
		{
			"a longer stream", func(s *peertest.Peer) { s.Open("0102 0162 00") },
			func(p *peertest.Peer) { p.WantStream("0102 0162 00"); p.WantIdle() },
		},
		{
			"FIN", func(s *peertest.Peer) { s.OpenUni("0a").FIN() },
			func(p *peertest.Peer) { p.WantUniStream("0a").WantFIN(); p.WantIdle() },
		},
		{
			"no FIN", func(s *peertest.Peer) { s.OpenUni("0a") },
			func(p *peertest.Peer) { p.WantUniStream("0a"); p.WantIdle() },
		},
		{
			"reset", func(s *peertest.Peer) { s.OpenUni("0a").Reset(7) },
			func(p *peertest.Peer) { p.WantUniStream().WantReset(7); p.WantIdle() },
		},
		{
			"another reset", func(s *peertest.Peer) { s.OpenUni("0a").Reset(8) },
			func(p *peertest.Peer) { p.WantUniStream().WantReset(8); p.WantIdle() },
		},
		{
			"a datagram", func(s *peertest.Peer) { s.SendDatagram("00") },
			func(p *peertest.Peer) { p.WantDatagram("00"); p.WantIdle() },
		},
		{
			"another datagram", func(s *peertest.Peer) { s.SendDatagram("01") },
			func(p *peertest.Peer) { p.WantDatagram("01"); p.WantIdle() },
		},
		{"a close", func(s *peertest.Peer) { s.Conn.Close(3, "") }, func(p *peertest.Peer) { p.WantClose(3) }},
		{"another close", func(s *peertest.Peer) { s.Conn.Close(1, "") }, func(p *peertest.Peer) { p.WantClose(1) }},
		{"a failure", func(s *peertest.Peer) { s.Conn.Fail(fmt.Errorf("idle")) }, func(p *peertest.Peer) {
			if p.Conn.Context().Err() == nil {
				p.WantClose(0)
			}
		}},
	}
	for i, acting := range rows {
		for j, scripted := range rows {
			failure := play(t, acting.act, scripted.script)
			if (failure == "") != (i == j) && scripted.name != "a failure" {
				t.Errorf("session does %s, script wants %s: %q", acting.name, scripted.name, failure)
			}
		}
	}
}

func TestPeerSeesStop(t *testing.T) {
	refuse := func(code uint64) func(*peertest.Peer) {
		return func(s *peertest.Peer) {
			go func() {
				st, err := s.Conn.AcceptStream(s.Conn.Context())
				if err == nil {
					st.Stop(code)
					st.Reset(code)
				}
			}()
		}
	}
	for _, tt := range []struct {
		name   string
		act    func(*peertest.Peer)
		script func(*peertest.Peer)
		ok     bool
	}{
		{"wanted", refuse(1), func(p *peertest.Peer) { p.Open("00").Refused(1, 1); p.WantIdle() }, true},
		{"wanted after FIN", refuse(1), func(p *peertest.Peer) { p.Open("00").FIN().WantStop(1).WantReset(1); p.WantIdle() }, true},
		{"another code", refuse(2), func(p *peertest.Peer) { p.Open("00").Refused(2, 1) }, false},
		{"another reset code", refuse(2), func(p *peertest.Peer) { p.Open("00").Refused(1, 2) }, false},
		{"not wanted", refuse(1), func(p *peertest.Peer) { p.Open("00").WantReset(1); p.WantIdle() }, false},
		{"not sent", func(*peertest.Peer) {}, func(p *peertest.Peer) { p.Open("00").WantStop(1) }, false},
		{"any", refuse(9), func(p *peertest.Peer) { p.Open("00").AnyStop().WantReset(9); p.WantIdle() }, true},
	} {
		if failure := play(t, tt.act, tt.script); (failure == "") != tt.ok {
			t.Errorf("%s: %q", tt.name, failure)
		}
	}
}

func TestPeerHandshake(t *testing.T) {
	for v := message.Lite01; v <= message.Lite06; v++ {
		synctest.Test(t, func(t *testing.T) {
			client, server := peertest.Pair(peertest.Options{})
			defer client.Close(0, "")
			c, s := peertest.NewPeer(t, client, v), peertest.NewPeer(t, server, v)
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Server(message.Setup{Hop: 9})
				if got := s.WantSetup(); v.HasSetup() && got.Hop != 7 {
					t.Errorf("%v: client's SETUP is %+v", v, got)
				}
			}()
			c.Client(message.Setup{Hop: 7})
			if got := c.WantSetup(); v.HasSetup() && got.Hop != 9 {
				t.Errorf("%v: server's SETUP is %+v", v, got)
			}
			<-done
			c.WantIdle()
		})
	}
}
