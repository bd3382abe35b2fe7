package message

import (
	"fmt"
	"io"

	"github.com/moqmesh/moqmesh/wire"
)

// Append appends the type of a stream.
func (t StreamType) Append(b []byte) []byte { return wire.AppendVarint(b, uint64(t)) }

// Append appends the type of a stream.
func (t UniType) Append(b []byte) []byte { return wire.AppendVarint(b, uint64(t)) }

func (t StreamType) String() string {
	switch t {
	case StreamSession:
		return "SESSION"
	case StreamAnnounce:
		return "ANNOUNCE"
	case StreamSubscribe:
		return "SUBSCRIBE"
	case StreamFetch:
		return "FETCH"
	case StreamProbe:
		return "PROBE"
	case StreamGoaway:
		return "GOAWAY"
	case StreamTrack:
		return "TRACK"
	case StreamInbandSetup:
		return "in-band SETUP"
	default:
		return fmt.Sprintf("type 0x%x", uint64(t))
	}
}

func (t UniType) String() string {
	switch t {
	case UniGroup:
		return "GROUP"
	case UniSetup:
		return "SETUP"
	default:
		return fmt.Sprintf("type 0x%x", uint64(t))
	}
}

// ReadStreamType reads the type of a bidirectional stream of the peer. A type that v does not have comes with an
// *Error that wraps ErrType: refuse the stream, it never ends the session (moq-lite 4.1). Other errors are those of
// wire.ReadVarint.
func ReadStreamType(r io.ByteReader, v Version) (StreamType, error) {
	n, err := wire.ReadVarint(r)
	t := StreamType(n)
	switch {
	case err != nil:
		return 0, readError("stream type", v, err)
	case !v.HasStream(t):
		return t, &Error{"stream " + t.String(), v, ErrType}
	default:
		return t, nil
	}
}

// ReadUniType reads the type of a unidirectional stream of the peer, as ReadStreamType does.
func ReadUniType(r io.ByteReader, v Version) (UniType, error) {
	n, err := wire.ReadVarint(r)
	t := UniType(n)
	switch {
	case err != nil:
		return 0, readError("unidirectional stream type", v, err)
	case !v.HasUniStream(t):
		return t, &Error{"unidirectional stream " + t.String(), v, ErrType}
	default:
		return t, nil
	}
}
