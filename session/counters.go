package session

import "sync/atomic"

// Counters are one session's totals. The session writes them, anybody may read them at any time.
type Counters struct {
	Sent     Traffic // we were the publisher
	Received Traffic // we were the subscriber
	// Control bytes by class: messages and what frames them, not the content.
	ControlSent, ControlReceived [ControlClasses]atomic.Uint64

	// ByBroadcast, if set before the session begins, returns what else to count the traffic of a path in, which is as
	// the session spells it; nil = nothing. It may be called concurrently and must not block.
	ByBroadcast func(path string) *Broadcast
}

// Broadcast are the totals of one broadcast.
type Broadcast struct{ Sent, Received Traffic }

// Broadcast returns what ByBroadcast does, nil if that is not set.
func (c *Counters) Broadcast(path string) *Broadcast {
	if c.ByBroadcast == nil {
		return nil
	}
	return c.ByBroadcast(path)
}

// Traffic counts one direction.
type Traffic struct {
	Bytes, Frames, Groups, Datagrams         atomic.Uint64 // payload bytes
	AnnouncesStarted, AnnouncesEnded         atomic.Uint64
	AnnouncedBytes                           atomic.Uint64 // of the names in both
	SubscriptionsOpened, SubscriptionsClosed atomic.Uint64
	// Viewers are sessions that watch a broadcast, however many of its tracks.
	ViewersOpened, ViewersClosed atomic.Uint64
	Fetches                      atomic.Uint64
	// Groups that were reset or skipped because they were too old, and what was lost with them as far as it was there:
	// frames, datagrams, payload bytes of both.
	StaleGroups, StaleFrames, StaleDatagrams, StaleBytes atomic.Uint64
}

// ControlClass says what control messages are about.
type ControlClass uint8

// The classes.
const (
	ControlOther ControlClass = iota
	ControlSession
	ControlAnnounce
	ControlTrackInfo
	ControlSubscribe
	ControlFetch
	ControlProbe
	ControlAuth
	ControlGoaway
	ControlClasses // how many there are
)

func (c ControlClass) String() string {
	switch c {
	case ControlSession:
		return "session"
	case ControlAnnounce:
		return "announce"
	case ControlTrackInfo:
		return "track_info"
	case ControlSubscribe:
		return "subscribe"
	case ControlFetch:
		return "fetch"
	case ControlProbe:
		return "probe"
	case ControlAuth:
		return "auth"
	case ControlGoaway:
		return "goaway"
	default:
		return "other"
	}
}
