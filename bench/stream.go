package bench

import (
	"errors"

	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/wire"
)

// errStream means that a stream carries something else than a group of test frames.
var errStream = errors.New("not a group of test frames")

// maxGroupHeader bounds the GROUP message, in bytes: three numbers.
const maxGroupHeader = 3 * wire.MaxVarintLen

// stream takes one unidirectional stream apart as its bytes arrive. It copies headers alone, and keeps no payload.
type stream struct {
	v     message.Version
	state streamState
	group message.Group
	carry []byte // a header that is not complete
	left  uint64 // bytes of the payload to come
	size  uint64 // of the payload
	sum   testmedia.Pieces
}

type streamState uint8

const (
	atType streamState = iota // nothing has come
	atFrame
	inPayload
	notGroup // the peer's SETUP, or unknown
)

// feed takes the next bytes of the stream and calls frame for each frame that they complete; err says that it is damaged.
// Bytes of a stream that is no group are ignored.
func (s *stream) feed(b []byte, frame func(size uint64, h testmedia.Header, err error)) error {
	for len(b) > 0 && s.state != notGroup {
		if s.state == inPayload {
			n := min(s.left, uint64(len(b)))
			s.sum.Add(b[:n])
			s.left -= n
			b = b[n:]
		} else {
			rest, err := s.header(b)
			if err != nil {
				return err
			}
			b = rest
		}
		if s.state == inPayload && s.left == 0 {
			h, err := s.sum.Header()
			frame(s.size, h, err)
			s.state = atFrame
		}
	}
	return nil
}

// header takes a header from the front of b, or all of b into the carry if it ends before the header does.
func (s *stream) header(b []byte) (rest []byte, err error) {
	in := b
	if len(s.carry) > 0 {
		s.carry = append(s.carry, b...)
		in = s.carry
	}
	n, err := s.parse(in)
	switch {
	case errors.Is(err, wire.ErrShort):
		if len(in) > message.MaxFrameHeaderLen+maxGroupHeader {
			return nil, errStream
		}
		if len(s.carry) == 0 {
			s.carry = append(s.carry, b...)
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	rest = b[len(b)-(len(in)-n):]
	s.carry = s.carry[:0]
	return rest, nil
}

// parse reads the header that is due at the front of b and returns its length; wire.ErrShort if b ends inside it.
func (s *stream) parse(b []byte) (int, error) {
	if s.state == atFrame {
		h, n, err := message.ParseFrameHeader(b, s.v)
		if err != nil {
			return 0, err
		}
		s.state, s.left, s.size = inPayload, h.Size, h.Size
		s.sum.Reset()
		return n, nil
	}
	typ, n, err := wire.ParseVarint(b)
	if err != nil {
		return 0, err
	}
	if message.UniType(typ) != message.UniGroup {
		s.state = notGroup
		return len(b), nil
	}
	length, m, err := wire.ParseVarint(b[n:])
	switch {
	case err != nil:
		return 0, err
	case length > maxGroupHeader:
		return 0, errStream
	case length > uint64(len(b)-n-m):
		return 0, wire.ErrShort
	}
	n += m
	end := n + int(length)
	if err := s.group.Decode(b[n:end], s.v); err != nil {
		return 0, err
	}
	s.state = atFrame
	return end, nil
}
