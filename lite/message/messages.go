package message

import (
	"time"
)

// Hop is the 62-bit identity of a relay or publisher; 0 names nobody.
type Hop = uint64

// StreamType opens a bidirectional stream.
type StreamType uint64

// Bidirectional stream types.
const (
	StreamSession     StreamType = 0
	StreamAnnounce    StreamType = 1
	StreamSubscribe   StreamType = 2
	StreamFetch       StreamType = 3
	StreamProbe       StreamType = 4
	StreamGoaway      StreamType = 5
	StreamTrack       StreamType = 6
	StreamInbandSetup StreamType = 0x20
)

// UniType opens a unidirectional stream.
type UniType uint64

// Unidirectional stream types.
const (
	UniGroup UniType = 0
	UniSetup UniType = 1
)

// Role says which directions a client will use.
type Role uint64

// Roles of SETUP parameter 3.
const (
	RoleBoth Role = iota
	RolePublisher
	RoleSubscriber
)

// Option is an optional integer (absent = 0 on the wire, else value + 1).
type Option struct {
	Set   bool
	Value uint64
}

// Some is a present Option.
func Some(v uint64) Option { return Option{Set: true, Value: v} }

// Setup is SETUP of lite-05 and 06 (uni stream 1).
type Setup struct {
	Probe   uint64
	Path    string
	HasPath bool
	Role    Role
	Cost    uint64
	HasCost bool
	Hop     Hop
}

// ClientSetup is the in-band CLIENT_SETUP of lite-01 and 02. Its parameters are checked and ignored.
type ClientSetup struct {
	Versions []uint64
	Params   []Param
}

// ServerSetup is the in-band SERVER_SETUP.
type ServerSetup struct {
	Version uint64
	Params  []Param
}

// Param is a moq-transport-14 key-value: even ids have Value, odd ids have Bytes.
type Param struct {
	ID    uint64
	Value uint64
	Bytes []byte
}

// AnnounceRequest is the first message of an ANNOUNCE stream.
type AnnounceRequest struct {
	Prefix     string
	ExcludeHop Hop // 04 and 05 only
}

// AnnounceInit is the first answer on 01 and 02.
type AnnounceInit struct{ Suffixes []string }

// AnnounceOK is the first answer on 05 and 06.
type AnnounceOK struct {
	Hop    Hop
	Active uint64
}

// AnnounceKind says what an announcement does.
type AnnounceKind uint8

// Kinds of announcement.
const (
	AnnounceStart AnnounceKind = iota
	AnnounceEnd
	AnnounceRestart
	AnnounceUnknown // 06: an unknown type, to be skipped; assigns no id
)

// Announce is one announcement: ANNOUNCE_BROADCAST on 01 to 05, the typed START, END and RESTART on 06.
// Which fields exist depends on version and kind (moq-lite.md 5.5, 5.6). On 05 a restart is a repeated Start.
type Announce struct {
	Kind     AnnounceKind
	ID       uint64 // END and RESTART on 06
	Suffix   string
	HopCount uint64 // 03
	Hops     []Hop  // 04 and later
	Warm     uint64 // 06
	Cold     uint64 // 06
}

// Bounds are the preferences that SUBSCRIBE and SUBSCRIBE_UPDATE share.
type Bounds struct {
	Priority   uint8
	MaxAge     time.Duration // 03 and later
	StartGroup Option        // 06: a floor, where absent and 0 are the same bytes
	EndGroup   Option        // inclusive
	StartFrame uint64        // 06
	EndFrame   Option        // 06, inclusive
}

// Subscribe is the first message of a SUBSCRIBE stream.
type Subscribe struct {
	ID        uint64
	Broadcast string
	Track     string
	Bounds
}

// SubscribeUpdate replaces all preferences (03 and later).
type SubscribeUpdate struct{ Bounds }

// SubscribeOK is the answer on 01 to 04.
type SubscribeOK struct {
	Priority   uint8
	MaxAge     time.Duration
	StartGroup Option
	EndGroup   Option
}

// SubscribeStart, SubscribeEnd and SubscribeDrop are the typed answers (START and END on 05+, DROP on 03+).
type (
	SubscribeStart struct{ Group uint64 }
	SubscribeEnd   struct{ Group uint64 } // exclusive
	SubscribeDrop  struct {
		Start, End uint64 // inclusive
		Code       uint64
	}
)

// Track asks for TRACK_INFO (05, 06).
type Track struct {
	Broadcast string
	Track     string
}

// TrackInfo is its answer.
type TrackInfo struct {
	Priority  uint8
	MaxAge    time.Duration
	Timescale uint64
}

// Fetch asks for one group.
type Fetch struct {
	Broadcast  string
	Track      string
	Priority   uint8
	Group      uint64
	StartFrame uint64 // 06
	EndFrame   Option // 06, inclusive
}

// Group opens a group stream.
type Group struct {
	Subscribe  uint64
	Sequence   uint64
	StartFrame uint64 // 06
}

// Datagram is a whole datagram (05, 06).
type Datagram struct {
	Subscribe uint64
	Sequence  uint64
	Timestamp uint64
	Payload   []byte // aliases the input after decoding
}

// Probe is a report of the publisher's path (03 and later).
type Probe struct {
	Bitrate uint64        // bit/s; 0 = unknown
	RTT     time.Duration // whole milliseconds; 04 and later
}

// Goaway asks the peer to move (04 and later).
type Goaway struct{ URI string }

// SessionInfo is read and ignored on 01 and 02.
type SessionInfo struct{ Bitrate uint64 }
