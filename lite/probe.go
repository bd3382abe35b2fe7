package lite

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// Cadence of PROBE (moq-lite 5.14): the connection is looked at every probeEvery; a report is due at once for a
// round-trip time that moved by a quarter, and for a bitrate that moved by a share which shrinks from a quarter to
// nothing within probeLimit of the last report.
const (
	probeEvery = 100 * time.Millisecond
	probeLimit = 10 * time.Second
	probeShare = 0.25
	// probeQuiet is the time between looks while next to nothing is sent. A report is late by no more than that, and
	// an idle session costs a tenth of the wake-ups.
	probeQuiet = time.Second
)

// Rates are measured over rateWindow. Below minRate the sender has next to nothing to send, and what the path could carry
// is not known.
const (
	rateWindow = time.Second
	minRate    = 64_000 // bit/s
)

// serveProbe reports what the connection can carry until the subscriber has enough (03 and later).
func (s *Session) serveProbe(r *request) {
	r.start()
	rep := &reporter{s: s, r: r}
	rep.look()
	_, err := r.in.ReadByte()
	rep.stop()
	switch {
	case err == nil:
		err = errExtra
	case errors.Is(err, io.EOF):
		err = errFinished
	}
	r.giveUp(s.conn.Context(), err)
}

// reporter writes the PROBE messages of one stream. A timer has it look; between looks it has no goroutine.
type reporter struct {
	s      *Session
	r      *request
	prober prober

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// look says what is due, and arms the timer for the next time. If the stream has failed it ends both sides, which is
// how serveProbe learns. While nothing is known it says nothing.
func (p *reporter) look() {
	if !p.s.enter() {
		return
	}
	defer p.s.leave()
	if m, due := p.prober.sample(time.Now(), p.s.conn.Stats()); due {
		b, err := m.Append(nil, p.s.version)
		if err == nil {
			_, err = p.r.Write(b)
		}
		if err != nil {
			p.r.giveUp(p.s.conn.Context(), err)
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
	case p.timer == nil:
		p.timer = time.AfterFunc(p.prober.pause(), p.look)
	default:
		p.timer.Reset(p.prober.pause())
	}
}

// stop ends the looking; one look may still be under way.
func (p *reporter) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// prober decides what is reported and when.
type prober struct {
	last   message.Probe
	sentAt time.Time // zero before the first report
	ring   [int(rateWindow/probeEvery) + 1]sentSample
	n      int  // samples in the ring, and those that were overwritten
	quiet  bool // next to nothing was sent lately
}

type sentSample struct {
	at    time.Time
	bytes uint64
}

// sample takes the state of the connection at a time and reports whether a message is due.
func (p *prober) sample(now time.Time, st transport.Stats) (message.Probe, bool) {
	m := message.Probe{Bitrate: p.bitrate(now, st), RTT: st.RTT.Truncate(time.Millisecond)}
	if st.RTT > 0 {
		m.RTT = max(m.RTT, time.Millisecond) // a measured one is never unknown
	}
	if !p.due(now, m) {
		return m, false
	}
	p.last, p.sentAt = m, now
	return m, true
}

// pause is the time to the next look.
func (p *prober) pause() time.Duration {
	if p.quiet {
		return probeQuiet
	}
	return probeEvery
}

// bitrate estimates what the path carries: the congestion window per round trip, but at most twice what was sent
// lately, since the window says nothing while there is little to send; 0 = unknown.
func (p *prober) bitrate(now time.Time, st transport.Stats) uint64 {
	oldest := p.ring[0]
	if p.n >= len(p.ring) {
		oldest = p.ring[p.n%len(p.ring)]
	}
	p.ring[p.n%len(p.ring)] = sentSample{now, st.BytesSent}
	p.n++
	elapsed := now.Sub(oldest.at)
	if p.quiet = false; p.n == 1 || elapsed <= 0 {
		return 0
	}
	sent := float64(st.BytesSent-oldest.bytes) * 8 / elapsed.Seconds()
	if p.quiet = sent < minRate; p.quiet {
		p.ring[0], p.n = sentSample{now, st.BytesSent}, 1 // what comes next is measured from here
		return 0
	}
	if st.RTT <= 0 || st.CongestionWindow == 0 {
		return 0
	}
	return uint64(math.Round(min(float64(st.CongestionWindow)*8/st.RTT.Seconds(), 2*sent)))
}

// due reports whether m is to be sent now.
func (p *prober) due(now time.Time, m message.Probe) bool {
	known := m.Bitrate != 0 || m.RTT != 0
	if p.sentAt.IsZero() {
		return known
	}
	was := p.last.Bitrate != 0 || p.last.RTT != 0
	if !known {
		return was // one report of zeros takes the earlier ones back
	}
	if !was || moved(float64(p.last.RTT), float64(m.RTT)) >= probeShare {
		return true
	}
	age := now.Sub(p.sentAt)
	if age < probeEvery {
		return false
	}
	left := 1 - float64(age-probeEvery)/float64(probeLimit-probeEvery)
	return moved(float64(p.last.Bitrate), float64(m.Bitrate)) >= probeShare*max(left, 0)
}

// moved is the change from a to b as a share of a.
func moved(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case a == 0:
		return 1
	case a > b:
		return (a - b) / a
	default:
		return (b - a) / a
	}
}

// Estimate is what the peer reports about its side of the path.
type Estimate struct {
	Bitrate uint64        // bit/s that it can send; 0 = unknown
	RTT     time.Duration // 0 = unknown, always before 04
}

// Probe asks the peer for estimates of what it can send, and calls report with each, until ctx ends, the peer stops or
// the session ends. It fails with session.ErrUnsupported where the version has no such request or the peer said that it
// cannot measure.
func (s *Session) Probe(ctx context.Context, report func(Estimate)) error {
	if err := s.mayProbe(ctx); err != nil {
		return err
	}
	if s.leaving.Load() {
		return session.ErrGoingAway
	}
	st, err := s.conn.OpenStream(ctx)
	if err != nil {
		return err
	}
	q := &query{tallied: s.tally(st, session.ControlProbe), s: s, ctx: ctx}
	q.in = newGroupInput(q, &s.frames)
	q.stop = context.AfterFunc(ctx, func() { refuse(st, StreamCancelled) })
	defer q.close()
	if _, err := q.Write(message.StreamProbe.Append(nil)); err != nil {
		return q.error(err)
	}
	for {
		var m message.Probe
		if err := message.Read(q.in, s.version, &m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return q.error(err)
		}
		report(Estimate{Bitrate: m.Bitrate, RTT: m.RTT})
	}
}

// mayProbe waits for the peer's SETUP where it says whether a PROBE stream may be opened.
func (s *Session) mayProbe(ctx context.Context) error {
	if !s.version.HasProbe() {
		return session.ErrUnsupported
	}
	if err := s.awaitSetup(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version.HasSetup() && s.probe == message.ProbeNone {
		return session.ErrUnsupported
	}
	return nil
}
