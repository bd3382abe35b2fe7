package message

// Append appends a TRACK (05 and later).
func (m Track) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasTrackInfo())
	body := w.Begin()
	w.path(m.Broadcast)
	w.String(m.Track)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *Track) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = Track{Broadcast: r.path(), Track: r.String()}
	return r.done(m, v, v.HasTrackInfo())
}

func (Track) name() string { return "TRACK" }

// Append appends a TRACK_INFO (05 and later).
func (m TrackInfo) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasTrackInfo())
	if m.Timescale == 0 {
		w.Fail(ErrTimescale)
	}
	body := w.Begin()
	w.U8(m.Priority)
	if v.HasOrdered() {
		w.U8(0)
	}
	w.Duration(m.MaxAge)
	w.Varint(m.Timescale)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *TrackInfo) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = TrackInfo{Priority: r.U8()}
	if v.HasOrdered() {
		r.U8()
	}
	m.MaxAge = r.Duration()
	if m.Timescale = r.Varint(); m.Timescale == 0 {
		r.Fail(ErrTimescale)
	}
	return r.done(m, v, v.HasTrackInfo())
}

func (TrackInfo) name() string { return "TRACK_INFO" }

// Append appends a FETCH (03 and later; served from 05 on).
func (m Fetch) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.hasFetchCodec())
	body := w.Begin()
	w.path(m.Broadcast)
	w.String(m.Track)
	w.U8(m.Priority)
	w.Varint(m.Group)
	if v.HasFrameBounds() {
		if m.inverted() {
			w.Fail(ErrBounds)
		}
		w.Varint(m.StartFrame)
		w.option(m.EndFrame)
	}
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *Fetch) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = Fetch{Broadcast: r.path(), Track: r.String(), Priority: r.U8(), Group: r.Varint()}
	if v.HasFrameBounds() {
		m.StartFrame = r.Varint()
		m.EndFrame = r.option()
		if m.inverted() {
			r.Fail(ErrBounds)
		}
	}
	return r.done(m, v, v.hasFetchCodec())
}

// inverted is true if the last frame lies before the first.
func (m *Fetch) inverted() bool { return m.EndFrame.Set && m.EndFrame.Value < m.StartFrame }

func (Fetch) name() string { return "FETCH" }

// hasFetchCodec is true where FETCH is defined, be it refused.
func (v Version) hasFetchCodec() bool { return v >= Lite03 }
