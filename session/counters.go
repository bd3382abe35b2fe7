package session

import "sync/atomic"

// Counters are one session's totals. The session writes them, anybody may read them at any time.
type Counters struct {
	Sent     Traffic // we were the publisher
	Received Traffic // we were the subscriber
}

// Traffic counts one direction.
type Traffic struct {
	Bytes, Frames, Groups, Datagrams         atomic.Uint64 // payload bytes
	AnnouncesStarted, AnnouncesEnded         atomic.Uint64
	SubscriptionsOpened, SubscriptionsClosed atomic.Uint64
	Fetches                                  atomic.Uint64
	StaleGroups                              atomic.Uint64 // reset or skipped because too old
}
