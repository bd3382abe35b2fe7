package peertest

import (
	"github.com/moqmesh/moqmesh/lite/message"
)

// Client plays the client's part of the handshake with a session that accepts: CLIENT_SETUP or SETUP, where the version
// has one. It returns the session stream of 01 and 02, else nil.
func (p *Peer) Client(m message.Setup) *PeerStream {
	p.tb.Helper()
	switch {
	case p.Version.HasInbandSetup():
		s := p.Open(message.ClientSetup{Versions: []uint64{p.Version.Code()}})
		return s.Want(message.ServerSetup{Version: p.Version.Code()})
	case p.Version.HasSetup():
		p.OpenUni(message.UniSetup, m).FIN().AnyStop() // it may be stopped before the FIN
	}
	return nil
}

// Server plays the server's part with a session that connects. It answers CLIENT_SETUP with the version of the peer, and
// sends SETUP.
func (p *Peer) Server(m message.Setup) *PeerStream {
	p.tb.Helper()
	switch {
	case p.Version.HasInbandSetup():
		s := p.WantStream()
		if _, err := message.ReadClientSetup(s.reader()); err != nil {
			p.tb.Fatalf("want CLIENT_SETUP: %v", err)
		}
		return s.Send(message.ServerSetup{Version: p.Version.Code()})
	case p.Version.HasSetup():
		p.OpenUni(message.UniSetup, m).FIN().AnyStop() // it may be stopped before the FIN
	}
	return nil
}

// WantSetup waits for the session's SETUP, where the version has one, and returns it.
func (p *Peer) WantSetup() (m message.Setup) {
	p.tb.Helper()
	if p.Version.HasSetup() {
		p.WantUniStream(message.UniSetup).Receive(&m).WantFIN()
	}
	return m
}
