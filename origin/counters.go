package origin

import "sync/atomic"

// counters are kept by the goroutines of the origin and read by anybody.
type counters struct {
	sessions, routes, consumers, fronts, tracks, readers, copies atomic.Int64
	subscriptions, failovers, refusals, mismatches               atomic.Uint64
	infos, fetches                                               atomic.Uint64
	hedges, hedgesWon, hedgesNeedless, hedgesRefused             atomic.Uint64
	paced                                                        atomic.Uint64
}

// Counters is a snapshot of an origin's totals. The first group are levels, the others only grow.
type Counters struct {
	Sessions  int // attached
	Routes    int // advertisements that sessions hold, declined ones included
	Consumers int // announce streams that we feed
	Fronts    int // broadcasts that are read, or of which properties are remembered
	Tracks    int // logical tracks, those without readers included
	Readers   int // subscriptions that we serve
	Upstreams int // upstream subscriptions
	// HoldsPending are updates that wait for the 300 ms hold to pass.
	HoldsPending int

	Subscriptions uint64 // upstream subscriptions opened
	Failovers     uint64 // times a track went on with another copy
	Refusals      uint64 // sources that refused a track or ended it with an error
	Mismatches    uint64 // sources refused because their properties differ
	InfoRequests  uint64 // upstream requests for properties
	Fetches       uint64 // upstream fetches
	// Hedges are second sources that were asked because the first had fallen silent. HedgesWon have delivered a frame that
	// readers lacked, HedgesNeedless ended without, HedgesRefused were not accepted or died.
	Hedges, HedgesWon, HedgesNeedless, HedgesRefused uint64
	// Slowed are announcements that had to wait, see Config.AnnounceRate.
	Slowed uint64
}
