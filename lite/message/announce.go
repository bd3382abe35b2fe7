package message

import (
	"strings"

	"github.com/moqmesh/moqmesh/wire"
)

// Status byte of ANNOUNCE_BROADCAST (moq-lite 5.5).
const (
	statusEnded   = 0
	statusActive  = 1
	statusRestart = 2 // 05, never sent
)

// Types of announcement on 06 (moq-lite 5.6).
const (
	typeAnnounceStart   = 0
	typeAnnounceEnd     = 1
	typeAnnounceRestart = 2
)

// initPrealloc bounds what the count of ANNOUNCE_INIT makes us allocate before its suffixes are seen.
const initPrealloc = 1024

// Append appends an ANNOUNCE_REQUEST.
func (m AnnounceRequest) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	body := w.Begin()
	w.path(m.Prefix)
	if v.HasExcludeHop() {
		w.Varint(m.ExcludeHop)
	}
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *AnnounceRequest) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = AnnounceRequest{Prefix: r.path()}
	if v.HasExcludeHop() {
		m.ExcludeHop = r.Varint()
	}
	return r.done(m, v, true)
}

func (AnnounceRequest) name() string { return "ANNOUNCE_REQUEST" }

// Append appends an ANNOUNCE_INIT (01 and 02).
func (m AnnounceInit) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasAnnounceInit())
	if len(m.Suffixes) > MaxInit {
		w.Fail(ErrTooManySuffixes)
	}
	body := w.Begin()
	w.Varint(uint64(len(m.Suffixes)))
	for _, s := range m.Suffixes {
		w.suffix(s)
	}
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *AnnounceInit) Decode(body []byte, v Version) error {
	*m = AnnounceInit{}
	r := newReader(body)
	n := r.Varint()
	switch {
	case n > MaxInit:
		r.Fail(ErrTooManySuffixes)
		n = 0
	case n > uint64(r.Len()): // each takes a byte at least
		r.Fail(wire.ErrTruncated)
		n = 0
	}
	if n > 0 {
		m.Suffixes = make([]string, 0, min(n, initPrealloc))
	}
	for range n {
		if r.Err() != nil {
			break
		}
		m.Suffixes = append(m.Suffixes, r.path())
	}
	return r.done(m, v, v.HasAnnounceInit())
}

func (AnnounceInit) name() string { return "ANNOUNCE_INIT" }

// Append appends an ANNOUNCE_OK (05 and later).
func (m AnnounceOK) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasAnnounceOK())
	body := w.Begin()
	w.Varint(m.Hop)
	w.Varint(m.Active)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *AnnounceOK) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = AnnounceOK{Hop: r.Varint(), Active: r.Varint()}
	return r.done(m, v, v.HasAnnounceOK())
}

func (AnnounceOK) name() string { return "ANNOUNCE_OK" }

// Append appends an announcement in the form of v: ANNOUNCE_BROADCAST, or a typed one on 06. Before 06 there is no
// AnnounceRestart: where v.HasReannounce, it is a second AnnounceStart. An AnnounceEnd is sent without hops. Costs above
// the range are sent as the largest. AnnounceUnknown cannot be sent.
func (m Announce) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	if v.HasAnnounceIDs() {
		m.appendTyped(&w, v)
	} else {
		m.appendStatus(&w, v)
	}
	return w.done(m.name(v), v)
}

func (m Announce) appendTyped(w *writer, v Version) {
	switch m.Kind {
	case AnnounceStart:
		w.Varint(typeAnnounceStart)
	case AnnounceEnd:
		w.Varint(typeAnnounceEnd)
	case AnnounceRestart:
		w.Varint(typeAnnounceRestart)
	default:
		w.Fail(ErrType)
	}
	body := w.Begin()
	if m.Kind == AnnounceStart {
		w.suffix(m.Suffix)
	} else {
		w.Varint(m.ID)
	}
	if m.Kind != AnnounceEnd {
		w.hops(m.Hops)
		if v.HasCost() {
			w.Varint(min(m.Warm, wire.MaxVarint))
			w.Varint(min(m.Cold, wire.MaxVarint))
		}
	}
	w.End(body, MaxBody)
}

func (m Announce) appendStatus(w *writer, v Version) {
	body := w.Begin()
	switch m.Kind {
	case AnnounceStart:
		w.U8(statusActive)
	case AnnounceEnd:
		w.U8(statusEnded)
		m.HopCount, m.Hops = 0, nil
	default:
		w.Fail(ErrVersion)
	}
	w.suffix(m.Suffix)
	switch {
	case v.HasHopCount():
		w.hopCount(m.HopCount)
	case v.HasHops():
		w.hops(m.Hops)
	}
	w.End(body, MaxBody)
}

// DecodeAnnounce decodes an announcement. Before 06 there is no typ: it is ignored.
func DecodeAnnounce(typ uint64, body []byte, v Version) (m Announce, err error) {
	r := newReader(body)
	if v.HasAnnounceIDs() {
		m.decodeTyped(&r, typ, v)
	} else {
		m.decodeStatus(&r, v)
	}
	if err := r.Done(); err != nil {
		return m, &Error{m.name(v), v, err}
	}
	return m, nil
}

func (m *Announce) decodeTyped(r *reader, typ uint64, v Version) {
	switch typ {
	case typeAnnounceStart:
		m.Kind = AnnounceStart
		m.Suffix = r.path()
	case typeAnnounceEnd:
		m.Kind = AnnounceEnd
		m.ID = r.Varint()
		return
	case typeAnnounceRestart:
		m.Kind = AnnounceRestart
		m.ID = r.Varint()
	default:
		m.Kind = AnnounceUnknown
		r.Rest()
		return
	}
	m.Hops = r.hops()
	if v.HasCost() {
		m.Warm, m.Cold = r.Varint(), r.Varint()
	}
}

func (m *Announce) decodeStatus(r *reader, v Version) {
	status := r.U8()
	switch {
	case status == statusEnded:
		m.Kind = AnnounceEnd
	case status == statusActive, status == statusRestart && v.HasReannounce():
		m.Kind = AnnounceStart
	default:
		r.Fail(ErrStatus)
	}
	m.Suffix = r.path()
	switch {
	case v.HasHopCount():
		m.HopCount = r.hopCount()
	case v.HasHops():
		m.Hops = r.hops()
	}
	if m.Kind == AnnounceEnd { // they mean nothing here
		m.HopCount, m.Hops = 0, nil
	}
}

// ReadAnnounce reads one announcement. Errors are those of Read. On 06 an announcement of an unknown type is returned as
// AnnounceUnknown: skip it.
func ReadAnnounce(r wire.StreamReader, v Version) (Announce, error) {
	if v.HasAnnounceIDs() {
		typ, body, err := readTyped(r, "ANNOUNCE", v)
		if err != nil {
			return Announce{}, err
		}
		return DecodeAnnounce(typ, body, v)
	}
	body, err := wire.ReadBody(r, MaxBody)
	if err != nil {
		return Announce{}, readError("ANNOUNCE_BROADCAST", v, err)
	}
	return DecodeAnnounce(0, body, v)
}

func (m Announce) name(v Version) string {
	if !v.HasAnnounceIDs() {
		return "ANNOUNCE_BROADCAST"
	}
	switch m.Kind {
	case AnnounceStart:
		return "ANNOUNCE_START"
	case AnnounceEnd:
		return "ANNOUNCE_END"
	case AnnounceRestart:
		return "ANNOUNCE_RESTART"
	default:
		return "ANNOUNCE"
	}
}

// Announceable is false for a suffix with a segment "*" or "**", which can never be announced. Encoders refuse it;
// decoders do not, because the peer's announcement keeps its place (and its id) when it is declined.
func Announceable(suffix string) bool {
	if !strings.Contains(suffix, "*") {
		return true
	}
	for segment := range strings.SplitSeq(suffix, "/") {
		if segment == "*" || segment == "**" {
			return false
		}
	}
	return true
}

// suffix appends the path of an announcement.
func (w *writer) suffix(s string) {
	if !Announceable(s) {
		w.Fail(ErrWildcard)
	}
	w.path(s)
}
