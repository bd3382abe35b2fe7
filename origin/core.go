package origin

import (
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// maxCopies is how many upstream subscriptions of one track may overlap (F35).
const maxCopies = 3

// core decides for one logical track: which source is asked, which copy serves, which one only finishes what it has
// begun, when the track ends and when it is forgotten. It has no goroutine, clock or I/O: the owner tells it what
// happened and when, and carries out the effects it returns, in order. What lives in memory only, the places of the
// copies in the media track, it sees to itself.
type core struct {
	linger   time.Duration
	maxAge   time.Duration // cap on retention windows (F12)
	newTrack func(media.Info) *media.Track
	waker    func(copyID) media.Waker

	// Sources.
	layers [][]source              // as last told, see routesChanged
	stale  bool                    // there are stale routes instead
	who    audience                // who reads or waits; the owner keeps it
	out    map[sourceID]exclusion  // not to be asked
	infos  map[sourceID]media.Info // answers that passed the check (F8)
	fixed  *media.Info             // what they must equal, with the capped retention window; nil = nothing yet (F22)
	probe  *probe                  // the question in flight
	last   error                   // why the last source fell out
	sure   bool                    // the layers are what the owner knows, later than the last source fell out
	asked  uint64                  // number of the question that is to make sure; 0 = none
	checks uint64                  // numbers given

	// Demand.
	asks   bool               // readers want a range that is not empty
	want   media.Subscription // their aggregate, if asks
	here   int                // readers
	wait   int                // requests that need a source: for properties, for a group
	forget time.Time          // when a track without readers is forgotten; zero = it is in use

	// Content.
	track  *media.Track    // nil until a source was accepted
	copies []*upstreamCopy // in the order in which they were made
	buried []*media.Copy   // to be closed once their successors are there
	keep   bool            // what is cached outlives the readers (F16)
	serves int             // how often a copy became the serving one since there are readers
	end    uint64          // highest end that a source has declared, if ends
	ends   bool
	over   bool // ended cleanly (F39)
	apart  bool // over, and a later source is for a new logical track
	gone   bool // failed or forgotten

	drought drought
	hedge   hedge

	now  time.Time // of the event at hand
	effs []effect
	seq  uint64 // of ids
}

type (
	// sourceID is the sequence number of a route: one that is withdrawn and comes back is another source (F25).
	sourceID uint64
	// copyID names a copy or question of one track, never again.
	copyID uint64
)

// source is a route as a place to get the track from.
type source struct {
	id     sourceID
	caps   session.Caps
	goaway bool      // takes no new requests (R41)
	local  bool      // published in this process
	link   *link     // what is heard of the session, for hedges (H3); nil = nothing
	peer   route.Hop // the identity of its peer (R23)
	hops   string    // the hop list of the route
	// via and path say whom to ask for what. The core does not look at them.
	via  *Session
	path string
}

// exclusion is why a source is not asked.
type exclusion struct {
	why exclusionKind
	err error
}

type exclusionKind uint8

const (
	refused    exclusionKind = iota // F26
	mismatched                      // F23
	closing                         // its session is ending; this does not count as a refusal (F25)
	ended                           // it is done with the track (F39)
)

// probe is a request for the properties of the track.
type probe struct {
	id  copyID
	src source
}

// phase is how far a copy has come.
type phase uint8

const (
	reserved phase = iota // its source's properties are being checked; it holds the place of the next copy (F33)
	asked                 // subscribed, not accepted yet
	standby               // accepted as a hedge: it delivers beside the serving copy
	serving
	old // it finishes the groups it has open (F28)
)

// upstreamCopy is one copy. Its media part is closed by the core.
type upstreamCopy struct {
	id    copyID
	src   source
	phase phase
	media *media.Copy
	sent  media.Subscription // as last asked
	limit uint64             // of an old copy: just after its newest open group
	ended bool               // it has declared its end
	hedge bool               // see core.hedge
}

// apply takes in one event. After failTrack or forgetTrack there is nothing more to come.
func (c *core) apply(now time.Time, ev event) []effect {
	if c.gone {
		return nil
	}
	c.now, c.effs = now, nil
	switch ev := ev.(type) {
	case demandChanged:
		c.demand(ev)
	case routesChanged:
		c.stale, c.sure = ev.suspended, len(ev.layers) == 0
		c.reroute(ev.layers)
	case routesChecked:
		if ev.id == c.asked {
			c.sure, c.asked = true, 0
		}
	case infoAnswered:
		c.answered(ev)
	case copyOpened:
		c.opened(ev.id)
	case copyMoved:
		c.moved(ev.id)
	case copyDone:
		c.done(ev)
	case sourceLost:
		c.exclude(ev.src, ev.err)
	case evicted:
		if c.here+c.wait == 0 {
			c.leave()
		}
	case hedgeGranted:
		c.hedge.granted = c.hedge.wanted
	case closed:
		c.fail(ev.err)
	case tick:
		if !c.forget.IsZero() && !now.Before(c.forget) {
			c.leave()
		}
	}
	c.decide()
	if !c.stale && c.asked == 0 || c.gone {
		for _, m := range c.buried {
			m.Close()
		}
		c.buried = c.buried[:0]
	}
	return c.effs
}

// deadline is when a tick is due; zero = never.
func (c *core) deadline() time.Time {
	due := c.forget
	if !c.drought.since.IsZero() {
		due = c.drought.since.Add(c.patience())
	}
	if look := c.hedge.look; due.IsZero() || !look.IsZero() && look.Before(due) {
		due = look
	}
	return due
}

func (c *core) emit(e effect) { c.effs = append(c.effs, e) }

func (c *core) nextID() copyID {
	c.seq++
	return copyID(c.seq)
}

// decide brings about what should be so now. Every event ends here.
func (c *core) decide() {
	if c.gone {
		return
	}
	if !c.asks || c.over && c.here == 0 {
		c.dropCopies() // F4
	}
	if c.here+c.wait == 0 {
		c.stopProbe()
		c.quitHedge()
		c.drought = drought{}
		c.rest()
		return
	}
	c.forget = time.Time{}
	if c.over {
		c.stopProbe()
		c.quitHedge()
		return
	}
	t, ok := c.pick()
	if ok && c.who.before(t) > 0 {
		c.emit(expel{t})
	}
	c.probeFor(t, ok)
	if c.asks {
		c.copyFor(t, ok)
	}
	c.hedgeFor(t, ok)
	if ok {
		c.drought = drought{}
	} else {
		c.dry()
	}
}

// rest lets a track without readers linger (F16), or go.
func (c *core) rest() {
	c.serves = 0
	switch {
	case c.track == nil, !c.keep, len(c.layers) == 0, c.apart: // nobody can come back to it
		c.leave()
	case c.forget.IsZero():
		c.forget = c.now.Add(c.linger)
	}
}

// leave forgets the track.
func (c *core) leave() {
	c.close(media.ErrCancelled)
	c.emit(forgetTrack{})
}

// fail ends the track for everyone.
func (c *core) fail(err error) {
	c.close(err)
	c.emit(failTrack{err})
}

func (c *core) close(err error) {
	c.gone = true
	c.stopProbe()
	c.quitHedge()
	if c.track != nil {
		c.track.Close(err)
	}
	c.dropCopies()
}

// demand notes what readers want; what the copies ask for follows.
func (c *core) demand(ev demandChanged) {
	c.asks, c.want, c.here, c.wait = ev.asks, ev.want, ev.readers, ev.waiting
	if c.asks {
		for _, u := range c.copies {
			c.refresh(u)
		}
	}
}
