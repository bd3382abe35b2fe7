package origin

import (
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// firstAsk turns what a copy should ask for into what its wire can say (F4, F6).
func firstAsk(caps session.Caps, ask media.Subscription) media.Subscription {
	ask.Latest = false
	if !caps.Range {
		ask.Start = nil
	}
	if !caps.Range || !caps.Update {
		ask.End = nil // it could not be raised for a later reader; it is kept locally
	}
	return ask
}

// laterAsk is firstAsk for an update of what was sent. Where an absent start means the latest group (moq-lite 03 to
// 05), a start is never cleared or raised, only lowered (F6); one that was left out is stated as soon as it is known,
// since leaving it out again would move it to what is latest then.
func laterAsk(caps session.Caps, sent, ask media.Subscription, st media.CopyState) media.Subscription {
	ask = firstAsk(caps, ask)
	if caps.Floor || !caps.Range {
		return ask
	}
	from := sent.Start
	if from == nil && st.Started {
		from = &media.Position{Group: st.Start}
	}
	if from == nil || ask.Start == nil || from.Before(*ask.Start) {
		ask.Start = from
	}
	return ask
}
