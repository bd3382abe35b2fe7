// Package testmedia makes and checks test media: frames that say when they were sent, which group and place they
// belong to, and whether a byte of them has changed.
package testmedia

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

// Format is the layout of a test frame.
type Format uint8

// The formats. All numbers are big endian.
const (
	// Mesh is our own: "moqm", u32 frames per group, i64 send time (Unix ns), u64 group, u32 index, u32 CRC-32C of
	// everything else, then filling.
	Mesh Format = iota
	// JS is that of the other stacks' test clients: f64 time due (Unix ms), u32 group, u32 index, u32 frames per
	// group, then filling. It has no checksum.
	JS
	// Raw is any payload: nothing in it can be checked.
	Raw
)

// Sizes of the headers, which are the smallest frames, in bytes.
const (
	MeshHeader = 32
	JSHeader   = 20
)

const magic = 0x6d6f716d // "moqm"

// What is wrong with a frame.
var (
	ErrShort    = errors.New("frame is shorter than its header")
	ErrMagic    = errors.New("frame is not of this format")
	ErrChecksum = errors.New("checksum does not match")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ParseFormat knows the formats by their names: mesh, js and raw.
func ParseFormat(name string) (Format, error) {
	for _, f := range []Format{Mesh, JS, Raw} {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("unknown frame format %q: mesh, js or raw", name)
}

func (f Format) String() string {
	switch f {
	case Mesh:
		return "mesh"
	case JS:
		return "js"
	case Raw:
		return "raw"
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// Header says what a frame is.
type Header struct {
	Sent  time.Time
	Group uint64 // JS: the low 32 bits
	Index uint32 // place in the group, from 0
	Of    uint32 // frames per group
}

// Append appends a frame of size bytes, header included, and at least the header. Raw frames are filling only.
func (f Format) Append(dst []byte, h Header, size int) []byte {
	from := len(dst)
	switch f {
	case Mesh:
		dst = putMesh(dst, h)
	case JS:
		ms := float64(h.Sent.UnixNano()) / float64(time.Millisecond)
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(ms))
		dst = binary.BigEndian.AppendUint32(dst, uint32(h.Group))
		dst = binary.BigEndian.AppendUint32(dst, h.Index)
		dst = binary.BigEndian.AppendUint32(dst, h.Of)
	case Raw:
	}
	for seed := uint64(h.Index) + h.Group; len(dst)-from < size; {
		dst = append(dst, byte(seed+uint64(len(dst)-from)))
	}
	if f == Mesh {
		binary.BigEndian.PutUint32(dst[from+MeshHeader-4:], checksum(dst[from:]))
	}
	return dst
}

// Stamp writes another header into a Mesh frame, which keeps its filling, and makes its checksum right.
func Stamp(frame []byte, h Header) {
	putMesh(frame[:0], h)
	binary.BigEndian.PutUint32(frame[MeshHeader-4:], checksum(frame))
}

// putMesh appends a header without its checksum.
func putMesh(dst []byte, h Header) []byte {
	dst = binary.BigEndian.AppendUint32(dst, magic)
	dst = binary.BigEndian.AppendUint32(dst, h.Of)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Sent.UnixNano()))
	dst = binary.BigEndian.AppendUint64(dst, h.Group)
	dst = binary.BigEndian.AppendUint32(dst, h.Index)
	return binary.BigEndian.AppendUint32(dst, 0)
}

// Parse checks a frame and reads its header. A Raw frame has none.
func (f Format) Parse(payload []byte) (Header, error) {
	switch f {
	case Mesh:
		return parseMesh(payload)
	case JS:
		return parseJS(payload)
	case Raw:
	}
	return Header{}, nil
}

func parseMesh(p []byte) (Header, error) {
	if len(p) < MeshHeader {
		return Header{}, ErrShort
	}
	if binary.BigEndian.Uint32(p) != magic {
		return Header{}, ErrMagic
	}
	if binary.BigEndian.Uint32(p[MeshHeader-4:]) != checksum(p) {
		return Header{}, ErrChecksum
	}
	return meshHeader(p), nil
}

func parseJS(p []byte) (Header, error) {
	if len(p) < JSHeader {
		return Header{}, ErrShort
	}
	ms := math.Float64frombits(binary.BigEndian.Uint64(p))
	if !(ms >= 0 && ms < math.MaxInt64/float64(time.Millisecond)) {
		return Header{}, ErrMagic
	}
	return Header{
		Sent:  time.UnixMicro(int64(math.Round(ms * 1000))), // a double holds no more
		Group: uint64(binary.BigEndian.Uint32(p[8:])),
		Index: binary.BigEndian.Uint32(p[12:]),
		Of:    binary.BigEndian.Uint32(p[16:]),
	}, nil
}

// checksum covers all of a frame but the four bytes that hold it.
func checksum(p []byte) uint32 {
	sum := crc32.Update(0, castagnoli, p[:MeshHeader-4])
	return crc32.Update(sum, castagnoli, p[MeshHeader:])
}
