package message

// The differences between the versions, one method per row of moq-lite 11. Code asks these and does not compare
// versions itself.

// HasInbandSetup is true where CLIENT_SETUP and SERVER_SETUP fix the version and their stream stays open as the
// session stream.
func (v Version) HasInbandSetup() bool { return v <= Lite02 }

// HasSetup is true where each end sends SETUP on a unidirectional stream.
func (v Version) HasSetup() bool { return v >= Lite05 }

// HasExcludeHop is true where ANNOUNCE_REQUEST carries the hop of the subscriber.
func (v Version) HasExcludeHop() bool { return v == Lite04 || v == Lite05 }

// HasAnnounceInit is true where ANNOUNCE_INIT carries the initial set of announcements.
func (v Version) HasAnnounceInit() bool { return v <= Lite02 }

// HasAnnounceOK is true where ANNOUNCE_OK precedes the announcements and names the hop of the publisher.
func (v Version) HasAnnounceOK() bool { return v >= Lite05 }

// HasAnnounceIDs is true where announcements are typed messages and count ids.
func (v Version) HasAnnounceIDs() bool { return v >= Lite06 }

// HasReannounce is true where a live announcement can be changed in place: by a second active one on 05, by
// ANNOUNCE_RESTART on 06.
func (v Version) HasReannounce() bool { return v >= Lite05 }

// HasHopCount is true where an announcement tells the number of hops, the sender included, and no ids.
func (v Version) HasHopCount() bool { return v == Lite03 }

// HasHops is true where an announcement lists the hops.
func (v Version) HasHops() bool { return v >= Lite04 }

// HopsIncludeSender is true where the listed hops end with the sender. Later versions name it in ANNOUNCE_OK.
func (v Version) HopsIncludeSender() bool { return v == Lite04 }

// HasCost is true where announcements carry a warm and a cold cost.
func (v Version) HasCost() bool { return v >= Lite06 }

// HasRange is true where SUBSCRIBE carries max age, group start and group end.
func (v Version) HasRange() bool { return v >= Lite03 }

// HasOrdered is true where the retired ordered byte is still on the wire.
func (v Version) HasOrdered() bool { return v >= Lite03 && v <= Lite05 }

// HasFloor is true where group start is a floor, plainly encoded, and not an optional first group.
func (v Version) HasFloor() bool { return v >= Lite06 }

// HasFrameBounds is true where SUBSCRIBE, SUBSCRIBE_UPDATE, FETCH and GROUP can address frames inside a group.
func (v Version) HasFrameBounds() bool { return v >= Lite06 }

// HasSubscribeUpdate is true where a subscription can be changed.
func (v Version) HasSubscribeUpdate() bool { return v >= Lite03 }

// HasSubscribeOK is true where a subscription is answered with SUBSCRIBE_OK.
func (v Version) HasSubscribeOK() bool { return v <= Lite04 }

// HasTypedResponses is true where the answers to SUBSCRIBE have a type.
func (v Version) HasTypedResponses() bool { return v >= Lite03 }

// HasSubscribeStartEnd is true where SUBSCRIBE_START and SUBSCRIBE_END exist.
func (v Version) HasSubscribeStartEnd() bool { return v >= Lite05 }

// HasSubscribeDrop is true where SUBSCRIBE_DROP exists.
func (v Version) HasSubscribeDrop() bool { return v >= Lite03 }

// HasTrackInfo is true where TRACK and TRACK_INFO exist.
func (v Version) HasTrackInfo() bool { return v >= Lite05 }

// HasFetch is true where FETCH is served. It is defined, and refused, on 03 and 04 already.
func (v Version) HasFetch() bool { return v >= Lite05 }

// HasTimestamps is true where frames carry timestamps.
func (v Version) HasTimestamps() bool { return v >= Lite05 }

// HasDatagrams is true where datagrams exist.
func (v Version) HasDatagrams() bool { return v >= Lite05 }

// HasProbe is true where PROBE exists.
func (v Version) HasProbe() bool { return v >= Lite03 }

// HasProbeRTT is true where PROBE carries the round-trip time.
func (v Version) HasProbeRTT() bool { return v >= Lite04 }

// HasGoaway is true where GOAWAY exists.
func (v Version) HasGoaway() bool { return v >= Lite04 }

// HasStream is true where a bidirectional stream of type t may be opened (moq-lite 4.1). The in-band SETUP is not
// among them: it is the first stream of a session or a violation.
func (v Version) HasStream(t StreamType) bool {
	switch t {
	case StreamAnnounce, StreamSubscribe:
		return true
	case StreamFetch:
		return v.HasFetch()
	case StreamProbe:
		return v.HasProbe()
	case StreamGoaway:
		return v.HasGoaway()
	case StreamTrack:
		return v.HasTrackInfo()
	default:
		return false
	}
}

// HasUniStream is true where a unidirectional stream of type t may be opened.
func (v Version) HasUniStream(t UniType) bool {
	switch t {
	case UniGroup:
		return true
	case UniSetup:
		return v.HasSetup()
	default:
		return false
	}
}
