package message

import (
	"time"

	"github.com/moqmesh/moqmesh/wire"
)

// Append appends a PROBE (03 and later). A round-trip time is rounded down to whole milliseconds, but a measured one
// never to 0, which means unknown.
func (m Probe) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasProbe())
	body := w.Begin()
	w.Varint(m.Bitrate)
	if v.HasProbeRTT() {
		if m.RTT > 0 {
			m.RTT = max(m.RTT, time.Millisecond)
		}
		w.Duration(m.RTT)
	}
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *Probe) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = Probe{Bitrate: r.Varint()}
	if v.HasProbeRTT() {
		m.RTT = r.Duration()
	}
	return r.done(m, v, v.HasProbe())
}

func (Probe) name() string { return "PROBE" }

// Append appends a GOAWAY (04 and later).
func (m Goaway) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasGoaway())
	if len(m.URI) > MaxURI {
		w.Fail(wire.ErrTooLarge)
	}
	body := w.Begin()
	w.String(m.URI)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *Goaway) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = Goaway{URI: r.StringMax(MaxURI)}
	return r.done(m, v, v.HasGoaway())
}

func (Goaway) name() string { return "GOAWAY" }

// Append appends a SESSION_INFO (01 and 02).
func (m SessionInfo) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasInbandSetup())
	body := w.Begin()
	w.Varint(m.Bitrate)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *SessionInfo) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = SessionInfo{Bitrate: r.Varint()}
	return r.done(m, v, v.HasInbandSetup())
}

func (SessionInfo) name() string { return "SESSION_INFO" }
