package message

import (
	"github.com/moqmesh/moqmesh/wire"
)

// Types of the answers on a SUBSCRIBE stream (moq-lite 5.9): before 05, and from 05 on.
const (
	typeSubscribeOK      = 0 // 03, 04
	typeSubscribeDropOld = 1 // 03, 04
	typeSubscribeStart   = 0
	typeSubscribeEnd     = 1
	typeSubscribeDrop    = 2
)

// Response is an answer on a SUBSCRIBE stream: a SubscribeOK, SubscribeStart, SubscribeEnd or SubscribeDrop, by value.
type Response interface {
	Encoder
	response()
}

func (SubscribeOK) response()    {}
func (SubscribeStart) response() {}
func (SubscribeEnd) response()   {}
func (SubscribeDrop) response()  {}

// ReadResponse reads one answer. Errors are those of Read; an unknown type is an *Error that wraps ErrType, and what
// follows it cannot be trusted.
func ReadResponse(r wire.StreamReader, v Version) (Response, error) {
	if v.HasTypedResponses() {
		typ, body, err := readTyped(r, "SUBSCRIBE response", v)
		if err != nil {
			return nil, err
		}
		return DecodeResponse(typ, body, v)
	}
	body, err := wire.ReadBody(r, MaxBody)
	if err != nil {
		return nil, readError("SUBSCRIBE_OK", v, err)
	}
	return DecodeResponse(typeSubscribeOK, body, v)
}

// DecodeResponse decodes an answer. On 01 and 02 there is no typ: it is ignored.
func DecodeResponse(typ uint64, body []byte, v Version) (Response, error) {
	switch {
	case !v.HasTypedResponses() || v.HasSubscribeOK() && typ == typeSubscribeOK:
		var m SubscribeOK
		err := m.Decode(body, v)
		return m, err
	case v.HasSubscribeDrop() && typ == dropType(v):
		var m SubscribeDrop
		err := m.Decode(body, v)
		return m, err
	case v.HasSubscribeStartEnd() && typ == typeSubscribeStart:
		var m SubscribeStart
		err := m.Decode(body, v)
		return m, err
	case v.HasSubscribeStartEnd() && typ == typeSubscribeEnd:
		var m SubscribeEnd
		err := m.Decode(body, v)
		return m, err
	default:
		return nil, &Error{"SUBSCRIBE response", v, ErrType}
	}
}

// dropType is the type of SUBSCRIBE_DROP.
func dropType(v Version) uint64 {
	if v.HasSubscribeStartEnd() {
		return typeSubscribeDrop
	}
	return typeSubscribeDropOld
}

// Append appends a SUBSCRIBE_OK (01 to 04).
func (m SubscribeOK) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasSubscribeOK())
	if v.HasTypedResponses() {
		w.Varint(typeSubscribeOK)
	}
	body := w.Begin()
	if v.hasSubscribeOKPriority() {
		w.U8(m.Priority)
	}
	if v.HasRange() {
		w.U8(0) // ordered, on all versions that have both
		w.Duration(m.MaxAge)
		w.option(m.StartGroup)
		w.option(m.EndGroup)
	}
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *SubscribeOK) Decode(body []byte, v Version) error {
	*m = SubscribeOK{}
	r := newReader(body)
	if v.hasSubscribeOKPriority() {
		m.Priority = r.U8()
	}
	if v.HasRange() {
		r.U8() // ordered
		m.MaxAge = r.Duration()
		m.StartGroup = r.option()
		m.EndGroup = r.option()
	}
	return r.done(m, v, v.HasSubscribeOK())
}

func (SubscribeOK) name() string { return "SUBSCRIBE_OK" }

// hasSubscribeOKPriority is true where SUBSCRIBE_OK has any content.
func (v Version) hasSubscribeOKPriority() bool { return v != Lite02 }

// Append appends a SUBSCRIBE_START (05 and later).
func (m SubscribeStart) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasSubscribeStartEnd())
	w.Varint(typeSubscribeStart)
	body := w.Begin()
	w.Varint(m.Group)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *SubscribeStart) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = SubscribeStart{Group: r.Varint()}
	return r.done(m, v, v.HasSubscribeStartEnd())
}

func (SubscribeStart) name() string { return "SUBSCRIBE_START" }

// Append appends a SUBSCRIBE_END (05 and later).
func (m SubscribeEnd) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasSubscribeStartEnd())
	w.Varint(typeSubscribeEnd)
	body := w.Begin()
	w.Varint(m.Group)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m.
func (m *SubscribeEnd) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = SubscribeEnd{Group: r.Varint()}
	return r.done(m, v, v.HasSubscribeStartEnd())
}

func (SubscribeEnd) name() string { return "SUBSCRIBE_END" }

// Append appends a SUBSCRIBE_DROP (03 and later).
func (m SubscribeDrop) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasSubscribeDrop())
	w.Varint(dropType(v))
	body := w.Begin()
	w.Varint(m.Start)
	w.Varint(m.End)
	w.Varint(m.Code)
	w.End(body, MaxBody)
	return w.done(m.name(), v)
}

// Decode replaces m. It does not check that the range is in order.
func (m *SubscribeDrop) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = SubscribeDrop{Start: r.Varint(), End: r.Varint(), Code: r.Varint()}
	return r.done(m, v, v.HasSubscribeDrop())
}

func (SubscribeDrop) name() string { return "SUBSCRIBE_DROP" }
