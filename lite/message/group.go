package message

// Append appends a GROUP. A StartFrame that v cannot carry fails with ErrVersion: without it the frames would be taken
// for the first ones.
func (m Group) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasFrameBounds() || m.StartFrame == 0)
	body := w.Begin()
	w.Varint(m.Subscribe)
	w.Varint(m.Sequence)
	if v.HasFrameBounds() {
		w.Varint(m.StartFrame)
	}
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *Group) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = Group{Subscribe: r.Varint(), Sequence: r.Varint()}
	if v.HasFrameBounds() {
		m.StartFrame = r.Varint()
	}
	return r.done(m, v, true)
}

func (Group) name() string { return "GROUP" }

// Append appends a datagram (05 and later). It has no length of its own.
func (m Datagram) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasDatagrams())
	if len(m.Payload) > MaxDatagramPayload {
		w.Fail(ErrFrameTooLarge)
	}
	w.Varint(m.Subscribe)
	w.Varint(m.Sequence)
	w.Varint(m.Timestamp)
	w.Raw(m.Payload)
	return w.done(m.name(), v)
}

// Decode replaces m. The payload aliases b.
func (m *Datagram) Decode(b []byte, v Version) error {
	r := newReader(b)
	*m = Datagram{Subscribe: r.Varint(), Sequence: r.Varint(), Timestamp: r.Varint(), Payload: r.Rest()}
	if len(m.Payload) > MaxDatagramPayload {
		r.Fail(ErrFrameTooLarge)
	}
	return r.done(m, v, v.HasDatagrams())
}

func (Datagram) name() string { return "DATAGRAM" }
