package message

import (
	"github.com/moqmesh/moqmesh/wire"
)

// Append appends a SUBSCRIBE.
func (m Subscribe) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	body := w.Begin()
	w.Varint(m.ID)
	w.path(m.Broadcast)
	w.String(m.Track)
	m.Bounds.append(&w, v)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m. On 01 and 02 MaxAge is unlimited (wire.MaxDuration), as the wire has none.
func (m *Subscribe) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = Subscribe{ID: r.Varint(), Broadcast: r.path(), Track: r.String()}
	m.Bounds.decode(&r, v)
	return r.done(m, v, true)
}

func (Subscribe) name() string { return "SUBSCRIBE" }

// Append appends a SUBSCRIBE_UPDATE (03 and later).
func (m SubscribeUpdate) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasSubscribeUpdate())
	body := w.Begin()
	m.Bounds.append(&w, v)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *SubscribeUpdate) Decode(body []byte, v Version) error {
	*m = SubscribeUpdate{}
	r := newReader(body)
	m.Bounds.decode(&r, v)
	return r.done(m, v, v.HasSubscribeUpdate())
}

func (SubscribeUpdate) name() string { return "SUBSCRIBE_UPDATE" }

// append appends the fields from priority on (moq-lite 5.7).
func (m *Bounds) append(w *writer, v Version) {
	w.U8(m.Priority)
	if v.HasOrdered() {
		w.U8(0)
	}
	if !v.HasRange() {
		return
	}
	w.Duration(m.MaxAge)
	if v.HasFloor() {
		w.Varint(m.StartGroup.or(0))
	} else {
		w.option(m.StartGroup)
	}
	w.option(m.EndGroup)
	if v.HasFrameBounds() {
		if m.EndFrame.Set && !m.EndGroup.Set {
			w.Fail(ErrBounds)
		}
		w.Varint(m.StartFrame)
		w.option(m.EndFrame)
	}
}

// decode reads what append writes.
func (m *Bounds) decode(r *reader, v Version) {
	m.Priority = r.U8()
	if v.HasOrdered() {
		r.U8()
	}
	if !v.HasRange() {
		m.MaxAge = wire.MaxDuration
		return
	}
	m.MaxAge = r.Duration()
	if v.HasFloor() {
		m.StartGroup.Value = r.Varint()
	} else {
		m.StartGroup = r.option()
	}
	m.EndGroup = r.option()
	if v.HasFrameBounds() {
		m.StartFrame = r.Varint()
		m.EndFrame = r.option()
		if m.EndFrame.Set && !m.EndGroup.Set {
			r.Fail(ErrBounds)
		}
	}
	if v.HasFloor() {
		// A floor of 0 is none, unless a frame of group 0 is asked for.
		m.StartGroup.Set = m.StartGroup.Value != 0 || m.StartFrame != 0
	}
}

// or is the value, or other if it is absent.
func (o Option) or(other uint64) uint64 {
	if o.Set {
		return o.Value
	}
	return other
}
