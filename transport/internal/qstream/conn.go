package qstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"

	"github.com/quic-go/quic-go"

	"github.com/moqmesh/moqmesh/transport"
)

// SessionError translates how a QUIC connection ended. An application code becomes the session's;
// whoever gives it another meaning does so before.
func SessionError(err error) *transport.SessionError {
	if app, ok := errors.AsType[*quic.ApplicationError](err); ok && app.ErrorCode <= math.MaxUint32 {
		return &transport.SessionError{Code: uint32(app.ErrorCode), Reason: app.ErrorMessage, Remote: app.Remote}
	}
	return Lost(err)
}

// Lost is the session error of a connection that failed rather than being closed by the session.
func Lost(err error) *transport.SessionError {
	end := &transport.SessionError{Transport: err}
	if app, ok := errors.AsType[*quic.ApplicationError](err); ok {
		end.Remote = app.Remote
	}
	if tr, ok := errors.AsType[*quic.TransportError](err); ok {
		end.Remote = tr.Remote
	}
	if _, ok := errors.AsType[*quic.StatelessResetError](err); ok {
		end.Remote = true
	}
	return end
}

// oversized is larger than any datagram quic-go sends: its packets never exceed 1452 bytes.
var oversized [4096]byte

// MaxDatagram returns the largest datagram payload the connection takes now, 0 if the peer takes
// none. quic-go only tells it in the error for a larger one, which it checks before anything else.
func MaxDatagram(q *quic.Conn) int {
	if tooLarge, ok := errors.AsType[*quic.DatagramTooLargeError](q.SendDatagram(oversized[:])); ok {
		return int(max(0, tooLarge.MaxDatagramPayloadSize))
	}
	return 0
}

// SendDatagram sends a datagram. It copies the payload.
func SendDatagram(q *quic.Conn, payload []byte) error {
	err := q.SendDatagram(payload)
	if err == nil || errors.Is(err, net.ErrClosed) {
		return err
	}
	if _, ok := errors.AsType[*quic.DatagramTooLargeError](err); ok {
		return transport.ErrDatagramTooLarge
	}
	return transport.ErrNoDatagrams // the only other reason
}

// Stats converts the counters of a connection.
func Stats(q *quic.Conn) transport.Stats {
	s := q.ConnectionStats()
	return transport.Stats{
		RTT:              s.SmoothedRTT,
		MinRTT:           s.MinRTT,
		CongestionWindow: s.CongestionWindow,
		BytesSent:        s.BytesSent,
		BytesReceived:    s.BytesReceived,
		PacketsSent:      s.PacketsSent,
		PacketsReceived:  s.PacketsReceived,
		PacketsLost:      s.PacketsLost,
	}
}

// Info describes an established connection; Kind, Protocol and URL are left to the carrier. pinned
// says that the peer's leaf was verified by its fingerprint.
func Info(q *quic.Conn, state tls.ConnectionState, dialed, pinned bool) transport.Info {
	return transport.Info{
		Dialed:           dialed,
		ServerName:       state.ServerName,
		Remote:           q.RemoteAddr(),
		Local:            q.LocalAddr(),
		PeerCertificates: verified(state, pinned),
	}
}

func verified(state tls.ConnectionState, pinned bool) []*x509.Certificate {
	if len(state.VerifiedChains) > 0 {
		return state.VerifiedChains[0]
	}
	if pinned && len(state.PeerCertificates) > 0 {
		return state.PeerCertificates[:1]
	}
	return nil
}
