package media

import (
	"github.com/moqmesh/moqmesh/wire"
)

// Frame is one frame. Payload is shared with others: read only.
type Frame struct {
	Timestamp uint64 // absolute, in timescale units
	Payload   []byte
}

// Batch is one or more contiguous frames of a group. Its bytes are shared with other readers: read only. They stay
// valid as long as they are referenced, whatever becomes of the group.
type Batch struct {
	frames []frameInfo
	buf    []byte // the chunk, up to the end of the last frame
	// absolute: the reader began inside the group with this frame, so its timestamp is sent whole.
	absolute bool
}

// Frames is the number of frames.
func (b *Batch) Frames() int { return len(b.frames) }

// PayloadBytes is the sum of the frames' sizes without framing.
func (b *Batch) PayloadBytes() int {
	n := 0
	for _, f := range b.frames {
		n += len(f.body(b.buf))
	}
	return n
}

// Frame returns frame i of the batch.
func (b *Batch) Frame(i int) Frame {
	f := b.frames[i]
	return Frame{Timestamp: f.ts, Payload: f.body(b.buf)}
}

// Bytes returns the frames as moq-lite 05 and 06 write them (timestamp difference, size, payload). It is a part of
// the shared buffer, except for the first batch of a reader that begins inside a group: there the first timestamp
// must be made absolute, and the batch is copied.
func (b *Batch) Bytes() []byte {
	if len(b.frames) == 0 {
		return nil
	}
	if !b.absolute {
		return b.buf[b.frames[0].delta:]
	}
	rest := b.buf[b.frames[0].size:]
	out := make([]byte, 0, maxHead+len(rest))
	out = wire.AppendZigzag(out, int64(b.frames[0].ts)) // checked by GroupReader.Next
	return append(out, rest...)
}

// Legacy returns the frames as moq-lite 01 to 04 write them (size, payload). A single frame is a part of the shared
// buffer; several are copied to *scratch, which is overwritten, and grown where needed.
func (b *Batch) Legacy(scratch *[]byte) []byte {
	if len(b.frames) == 1 {
		f := b.frames[0]
		return b.buf[f.size:f.end:f.end]
	}
	out := (*scratch)[:0]
	for _, f := range b.frames {
		out = append(out, b.buf[f.size:f.end]...)
	}
	*scratch = out
	return out
}
