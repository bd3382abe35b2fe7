package media

import (
	"github.com/moqmesh/moqmesh/wire"
)

const (
	// chunkSize is the size to which the buffers of a group grow, in bytes.
	chunkSize = 64 << 10
	// minChunk is the smallest buffer, and the first one of a track that nothing is known of.
	minChunk = 256
	// bigFrame is the payload size from which a frame gets a buffer of its own, filled before the lock is taken.
	bigFrame = 16 << 10
	// maxTimestamp is the highest timestamp the wire can say, as the sum of differences.
	maxTimestamp = wire.MaxVarint
	// maxHead is the space for the longest timestamp difference.
	maxHead = wire.MaxVarintLen
)

// frameInfo locates one frame. It never changes, so readers may use it outside of the lock.
type frameInfo struct {
	ts    uint64
	chunk uint32
	delta uint32 // offset of the timestamp difference in the chunk
	size  uint32 // offset of the size, just behind it
	end   uint32 // offset just behind the payload
}

// body returns the payload of the frame in its chunk.
func (f frameInfo) body(buf []byte) []byte {
	start := f.size + 1<<(buf[f.size]>>6) // length of the varint
	return buf[start:f.end:f.end]
}

// chunk is a buffer of contiguous frames. Bytes that were written never change or move.
type chunk struct {
	buf []byte
	end int // index of the first frame behind it, in frameLog.frames
}

// frameLog is the append-only content of one group, in the form moq-lite 05 and 06 send it: per frame the zigzag
// difference of its timestamp to that of the frame before (0 before the first), the size, the payload. What moq-lite
// 01 to 04 send is the part of each frame from its size on. A frame always lies in one chunk.
type frameLog struct {
	chunks []chunk
	frames []frameInfo
	prev   uint64 // timestamp of the last frame
	bytes  int    // payload
	used   int    // payload and framing
	hint   sizeHint
}

// sizeHint is what a track's groups take, learned from the last complete one.
type sizeHint struct{ bytes, frames int }

// big returns a buffer that holds the frame behind room for its timestamp difference, or nil if the frame is small
// enough to be copied into a shared chunk.
func big(payload []byte) []byte {
	if len(payload) < bigFrame {
		return nil
	}
	b := make([]byte, maxHead, 2*maxHead+len(payload))
	b = wire.AppendVarint(b, uint64(len(payload)))
	return append(b, payload...)
}

// append adds a frame. own is what big returned for it.
func (l *frameLog) append(ts uint64, payload, own []byte) error {
	d := int64(ts) - int64(l.prev) // both are below 2^62
	if d < wire.MinZigzag || d > wire.MaxZigzag {
		return ErrMalformed
	}
	head := wire.VarintLen(wire.Zigzag(d))
	f := frameInfo{ts: ts}
	if own != nil {
		at := maxHead - head
		wire.AppendZigzag(own[at:at:maxHead], d)
		l.chunks = append(l.chunks, chunk{buf: own})
		f.delta, f.size, f.end = uint32(at), maxHead, uint32(len(own))
	} else {
		c := l.room(head + wire.VarintLen(uint64(len(payload))) + len(payload))
		f.delta = uint32(len(c.buf))
		f.size = f.delta + uint32(head)
		c.buf = wire.AppendZigzag(c.buf, d)
		c.buf = wire.AppendVarint(c.buf, uint64(len(payload)))
		c.buf = append(c.buf, payload...)
		f.end = uint32(len(c.buf))
	}
	if l.frames == nil {
		l.frames = make([]frameInfo, 0, max(1, l.hint.frames))
	}
	f.chunk = uint32(len(l.chunks) - 1)
	l.frames = append(l.frames, f)
	l.chunks[f.chunk].end = len(l.frames)
	l.prev = ts
	l.bytes += len(payload)
	l.used += int(f.end - f.delta)
	return nil
}

// room returns the last chunk if n bytes fit, else a new one.
func (l *frameLog) room(n int) *chunk {
	if k := len(l.chunks) - 1; k >= 0 && cap(l.chunks[k].buf)-len(l.chunks[k].buf) >= n {
		return &l.chunks[k]
	}
	// What the group is expected to take still; twice what it took where that is too little.
	size := l.hint.bytes - l.used
	if size < n {
		size = max(minChunk, l.used)
	}
	l.chunks = append(l.chunks, chunk{buf: make([]byte, 0, max(n, min(size, chunkSize)))})
	return &l.chunks[len(l.chunks)-1]
}

// batch returns the frames from index i on that lie in one chunk, at most up to index limit.
func (l *frameLog) batch(i, limit int) Batch {
	f := l.frames[i]
	c := l.chunks[f.chunk]
	frames := l.frames[i:min(c.end, limit)]
	last := frames[len(frames)-1].end
	return Batch{frames: frames, buf: c.buf[:last:last]}
}
