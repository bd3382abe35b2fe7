package origin

import (
	"github.com/moqmesh/moqmesh/media"
)

// event is what happened to a track.
type event interface{ event() }

type (
	// demandChanged says what readers want now. want is their aggregate if asks, which is false if there is nothing
	// to ask for (F4).
	demandChanged struct {
		asks    bool
		want    media.Subscription
		readers int
		waiting int
		// audience differs when somebody came or went through whom a source is reached.
		audience uint64
	}
	// routesChanged brings the sources in the order in which they are to be tried: by covering prefix, deepest first,
	// then by rank. The first prefix with a source that is not excluded decides alone (R27).
	routesChanged struct {
		layers    [][]source
		suspended bool // there are none, but stale routes (R43)
	}
	// routesChecked is the answer to checkRoutes: what had to be told before it was asked has been told.
	routesChecked struct{ id uint64 }
	// infoAnswered is the answer to askInfo.
	infoAnswered struct {
		id   copyID
		info media.Info
		err  error
	}
	// copyOpened says that a SUBSCRIBE was written.
	copyOpened struct{ id copyID }
	// copyMoved says that the media copy has something to tell (see media.Track.NewCopy).
	copyMoved struct{ id copyID }
	// copyDone says that an upstream subscription is over: nil after a clean end of the track.
	copyDone struct {
		id  copyID
		err error
	}
	// sourceLost says that the session of a source has ended, or takes no requests.
	sourceLost struct {
		src source
		err error
	}
	// evicted asks a track without readers to go.
	evicted struct{}
	// hedgeGranted is the answer to wantHedge.
	hedgeGranted struct{}
	// closed ends the track for everyone.
	closed struct{ err error }
	// tick says that the deadline has come.
	tick struct{}
)

func (demandChanged) event() {}
func (routesChanged) event() {}
func (routesChecked) event() {}
func (infoAnswered) event()  {}
func (copyOpened) event()    {}
func (copyMoved) event()     {}
func (copyDone) event()      {}
func (sourceLost) event()    {}
func (evicted) event()       {}
func (hedgeGranted) event()  {}
func (closed) event()        {}
func (tick) event()          {}

// effect is what the owner of a core must do.
type effect interface{ effect() }

type (
	// askInfo asks a source for the properties; the answer comes as infoAnswered.
	askInfo struct {
		id  copyID
		src source
	}
	// cancelInfo gives up a question; its answer is ignored.
	cancelInfo struct{ id copyID }
	// expel says that a source was chosen that is reached through readers, for want of others: these get nothing more.
	expel struct{ src source }
	// trackReady says that core.track is there: what waits for it can go on.
	trackReady struct{}
	// openCopy subscribes upstream; copyOpened and copyDone follow.
	openCopy struct {
		id    copyID
		src   source
		info  media.Info
		sub   media.Subscription
		media *media.Copy
	}
	// updateCopy changes what a copy asks for.
	updateCopy struct {
		id  copyID
		sub media.Subscription
	}
	// cancelCopy unsubscribes.
	cancelCopy struct{ id copyID }
	// servedBy says that a copy was accepted and serves from now on.
	servedBy struct{ src source }
	// checkRoutes asks for all that is known of routes, before a track ends for lack of one; routesChecked follows.
	checkRoutes struct{ id uint64 }
	// excluded says that a source fell out, for the log and the counters.
	excluded struct {
		src source
		exclusion
	}
	// wantHedge asks for a place among the hedges that the relay may start now; hedgeGranted follows (H11).
	wantHedge struct{ priority uint8 }
	// unwantHedge takes that back.
	unwantHedge struct{}
	// hedged says what became of a hedge, for the counters.
	hedged struct {
		src source
		hedgeOutcome
	}
	// suspect says that nothing at all arrives from the session of a source (H11).
	suspect struct{ src source }
	// partTrack says that the next request for this name is for a new logical track.
	partTrack struct{}
	// failTrack says that the track has ended with an error, which readers have got already.
	failTrack struct{ err error }
	// forgetTrack says that the track has ended and nobody is left.
	forgetTrack struct{}
)

func (askInfo) effect()     {}
func (cancelInfo) effect()  {}
func (expel) effect()       {}
func (trackReady) effect()  {}
func (openCopy) effect()    {}
func (updateCopy) effect()  {}
func (cancelCopy) effect()  {}
func (servedBy) effect()    {}
func (checkRoutes) effect() {}
func (excluded) effect()    {}
func (wantHedge) effect()   {}
func (unwantHedge) effect() {}
func (hedged) effect()      {}
func (suspect) effect()     {}
func (partTrack) effect()   {}
func (failTrack) effect()   {}
func (forgetTrack) effect() {}
