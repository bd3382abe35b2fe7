package qmux

import (
	"errors"

	"github.com/moqmesh/moqmesh/wire"
)

// The types of frames.
const (
	framePadding           = 0x00
	frameReset             = 0x04
	frameStop              = 0x05
	frameStream            = 0x08 // to 0x0f
	frameMaxData           = 0x10
	frameMaxStreamData     = 0x11
	frameMaxStreamsBidi    = 0x12
	frameMaxStreamsUni     = 0x13
	frameDataBlocked       = 0x14
	frameStreamDataBlocked = 0x15
	frameStreamsBlockedBi  = 0x16
	frameStreamsBlockedUni = 0x17
	frameConnectionClose   = 0x1c
	frameApplicationClose  = 0x1d
	frameResetAt           = 0x24
	frameDatagramRest      = 0x30
	frameDatagram          = 0x31
	frameParams            = 0x3f5153300d0a0d0a
	framePing              = 0x348c67529ef8c7bd
	framePong              = 0x348c67529ef8c7be
)

// The flags of STREAM frames.
const (
	flagFin    = 0x01
	flagLength = 0x02
	flagOffset = 0x04
)

const (
	// maxRecord is the largest record we accept, and advertise, in bytes.
	maxRecord = 16382
	// maxFrame00 is the largest frame of draft 00, and of the legacy format as far as we are concerned.
	maxFrame00 = 16384
	// maxPayload is the most that a STREAM frame of ours carries: older receivers enforce it.
	maxPayload = 16352
	// maxStreams is the largest number that a limit on streams can have.
	maxStreams = 1 << 60
)

// frame is a decoded frame. Which fields count depends on the type. data and params alias the input.
type frame struct {
	typ   uint64 // frameStream for all of 0x08 to 0x0f
	id    uint64
	code  uint64
	value uint64 // a limit, a final size, a reliable size's bound, or a sequence number
	fin   bool
	data  []byte // of a stream or datagram, or a reason
}

var (
	errFrameType = errors.New("unknown frame type")
	errLength    = errors.New("STREAM frame without a length")
	errReliable  = errors.New("reliable size above the final size")
	errStreams   = errors.New("limit on streams out of range")
)

// parser says what may be in the input.
type parser struct {
	draft Draft
	// delimited: the input ends where the last frame ends. Without it, a frame must say how long it is.
	delimited bool
}

// parse reads one frame and returns its length. The error is wire.ErrTruncated if b ends inside it, which more input may
// cure where the input is not delimited.
func (p parser) parse(b []byte) (f frame, n int, err error) {
	r := wire.NewReader(b)
	if p.draft == Legacy {
		p.legacy(&r, &f)
	} else {
		p.frame(&r, &f)
	}
	return f, len(b) - r.Len(), r.Err()
}

func (p parser) frame(r *wire.Reader, f *frame) {
	f.typ = r.Varint()
	switch f.typ {
	case framePadding:
	case frameReset, frameResetAt:
		p.reset(r, f)
	case frameStop:
		f.id, f.code = r.Varint(), r.Varint()
	case frameMaxStreamData, frameStreamDataBlocked:
		f.id, f.value = r.Varint(), r.Varint()
	case frameMaxStreamsBidi, frameMaxStreamsUni, frameStreamsBlockedBi, frameStreamsBlockedUni:
		if f.value = r.Varint(); f.value > maxStreams {
			r.Fail(errStreams)
		}
	case frameMaxData, frameDataBlocked:
		f.value = r.Varint()
	case frameConnectionClose:
		f.code = r.Varint()
		r.Varint() // the type of the frame that is to blame
		f.data = r.Bytes()
	case frameApplicationClose:
		f.code, f.data = r.Varint(), r.Bytes()
	case frameParams:
		f.data = r.Bytes()
	default:
		p.rest(r, f)
	}
}

// rest reads the frames that depend on the draft, and STREAM.
func (p parser) rest(r *wire.Reader, f *frame) {
	switch {
	case f.typ >= frameStream && f.typ <= frameStream|flagFin|flagLength|flagOffset:
		p.stream(r, f)
	case f.typ == frameDatagramRest && p.draft.records():
		f.typ, f.data = frameDatagram, r.Rest()
	case f.typ == frameDatagram && p.draft.records():
		f.data = r.Bytes()
	case (f.typ == framePing || f.typ == framePong) && p.draft.records():
		f.value = r.Varint()
	default:
		r.Fail(errFrameType)
	}
}

// reset reads both kinds of reset. That with a reliable size is taken for the plain one.
func (p parser) reset(r *wire.Reader, f *frame) {
	f.id, f.code, f.value = r.Varint(), r.Varint(), r.Varint()
	if f.typ == frameReset {
		return
	}
	switch reliable := r.Varint(); {
	case p.draft != Draft02:
		r.Fail(errFrameType)
	case reliable > f.value:
		r.Fail(errReliable)
	}
	f.typ = frameReset
}

func (p parser) stream(r *wire.Reader, f *frame) {
	flags := f.typ
	f.typ, f.fin = frameStream, flags&flagFin != 0
	f.id = r.Varint()
	if flags&flagOffset != 0 {
		r.Varint() // the carrier keeps the order
	}
	switch {
	case flags&flagLength != 0:
		f.data = r.Bytes()
	case p.delimited:
		f.data = r.Rest()
	default:
		r.Fail(errLength)
	}
}

// legacy reads a message of the format before the drafts: all of it is one frame, and types are one byte.
func (p parser) legacy(r *wire.Reader, f *frame) {
	f.typ = uint64(r.U8())
	switch f.typ {
	case frameStream, frameStream | flagFin:
		f.fin, f.typ = f.typ != frameStream, frameStream
		f.id, f.data = r.Varint(), r.Rest()
	case frameReset, frameStop:
		f.id, f.code = r.Varint(), r.Varint()
	case frameConnectionClose, frameApplicationClose:
		f.code, f.data = r.Varint(), r.Rest()
	default:
		r.Fail(errFrameType)
	}
}

// maxStreamHeader is how long the header of a STREAM frame may be.
const maxStreamHeader = 1 + 2*wire.MaxVarintLen + 2

// appendStream appends a STREAM frame but for its data.
func (d Draft) appendStream(b []byte, id, offset uint64, length int, fin bool) []byte {
	typ := byte(frameStream)
	if fin {
		typ |= flagFin
	}
	if d == Legacy {
		return wire.AppendVarint(append(b, typ), id)
	}
	b = wire.AppendVarint(append(b, typ|flagOffset|flagLength), id)
	return wire.AppendVarint(wire.AppendVarint(b, offset), uint64(length))
}

func (d Draft) appendReset(b []byte, id, code, final uint64) []byte {
	b = wire.AppendVarint(wire.AppendVarint(append(b, frameReset), id), code)
	if d == Legacy {
		return b
	}
	return wire.AppendVarint(b, final)
}

func appendStop(b []byte, id, code uint64) []byte {
	return wire.AppendVarint(wire.AppendVarint(append(b, frameStop), id), code)
}

// closeFrame is CONNECTION_CLOSE or APPLICATION_CLOSE.
func (d Draft) closeFrame(typ byte, code uint64, reason string) []byte {
	b := wire.AppendVarint([]byte{typ}, code)
	if d != Legacy {
		if typ == frameConnectionClose {
			b = append(b, framePadding) // no frame in particular
		}
		b = wire.AppendVarint(b, uint64(len(reason)))
	}
	return append(b, reason...)
}

// appendLimit appends a frame that has a type and a number.
func appendLimit(b []byte, typ, value uint64) []byte {
	return wire.AppendVarint(wire.AppendVarint(b, typ), value)
}

func appendMaxStreamData(b []byte, id, limit uint64) []byte {
	return wire.AppendVarint(wire.AppendVarint(append(b, frameMaxStreamData), id), limit)
}

func appendDatagram(b, payload []byte) []byte {
	return append(wire.AppendVarint(append(b, frameDatagram), uint64(len(payload))), payload...)
}

// datagramOverhead is what a DATAGRAM frame of the usual size has beside its payload, in bytes.
const datagramOverhead = 1 + 2
