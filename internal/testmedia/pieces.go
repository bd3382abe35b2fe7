package testmedia

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// Pieces checks one Mesh frame that comes in pieces, without keeping it. The zero value is ready; Reset makes it ready
// for the next frame. It is not safe for concurrent use.
type Pieces struct {
	head [MeshHeader]byte
	have int // bytes of head
	sum  uint32
}

// Reset forgets what came.
func (p *Pieces) Reset() { p.have, p.sum = 0, 0 }

// Add takes the next bytes.
func (p *Pieces) Add(b []byte) {
	if p.have < MeshHeader {
		n := copy(p.head[p.have:], b)
		p.have += n
		b = b[n:]
		if p.have < MeshHeader {
			return
		}
		p.sum = crc32.Update(0, castagnoli, p.head[:MeshHeader-4])
	}
	p.sum = crc32.Update(p.sum, castagnoli, b)
}

// Header checks the frame once all of it has been added, and reads its header. Errors are those of Format.Parse.
func (p *Pieces) Header() (Header, error) {
	switch {
	case p.have < MeshHeader:
		return Header{}, ErrShort
	case binary.BigEndian.Uint32(p.head[:]) != magic:
		return Header{}, ErrMagic
	case binary.BigEndian.Uint32(p.head[MeshHeader-4:]) != p.sum:
		return Header{}, ErrChecksum
	}
	return meshHeader(p.head[:]), nil
}

// meshHeader reads a header that has been checked.
func meshHeader(p []byte) Header {
	return Header{
		Of:    binary.BigEndian.Uint32(p[4:]),
		Sent:  time.Unix(0, int64(binary.BigEndian.Uint64(p[8:]))),
		Group: binary.BigEndian.Uint64(p[16:]),
		Index: binary.BigEndian.Uint32(p[24:]),
	}
}
