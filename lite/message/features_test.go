package message_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/lite/message"
)

// TestFeatures is the table of moq-lite 11, versions 01 to 06 from left to right.
func TestFeatures(t *testing.T) {
	type v = message.Version
	for _, tt := range []struct {
		name string
		has  func(v) bool
		want string
	}{
		{"in-band SETUP, session stream", v.HasInbandSetup, "yy...."},
		{"SETUP", v.HasSetup, "....yy"},
		{"exclude hop", v.HasExcludeHop, "...yy."},
		{"ANNOUNCE_INIT", v.HasAnnounceInit, "yy...."},
		{"ANNOUNCE_OK", v.HasAnnounceOK, "....yy"},
		{"typed announcements", v.HasAnnounceIDs, ".....y"},
		{"route update in place", v.HasReannounce, "....yy"},
		{"hop count", v.HasHopCount, "..y..."},
		{"hop ids", v.HasHops, "...yyy"},
		{"sender among the hops", v.HopsIncludeSender, "...y.."},
		{"route cost", v.HasCost, ".....y"},
		{"max age, start, end", v.HasRange, "..yyyy"},
		{"ordered byte", v.HasOrdered, "..yyy."},
		{"plain floor", v.HasFloor, ".....y"},
		{"frame bounds", v.HasFrameBounds, ".....y"},
		{"SUBSCRIBE_UPDATE", v.HasSubscribeUpdate, "..yyyy"},
		{"SUBSCRIBE_OK", v.HasSubscribeOK, "yyyy.."},
		{"typed responses", v.HasTypedResponses, "..yyyy"},
		{"SUBSCRIBE_START and END", v.HasSubscribeStartEnd, "....yy"},
		{"SUBSCRIBE_DROP", v.HasSubscribeDrop, "..yyyy"},
		{"TRACK", v.HasTrackInfo, "....yy"},
		{"FETCH served", v.HasFetch, "....yy"},
		{"timestamps", v.HasTimestamps, "....yy"},
		{"datagrams", v.HasDatagrams, "....yy"},
		{"PROBE", v.HasProbe, "..yyyy"},
		{"PROBE with RTT", v.HasProbeRTT, "...yyy"},
		{"GOAWAY", v.HasGoaway, "...yyy"},
	} {
		got := make([]byte, 6)
		for i := range got {
			got[i] = '.'
			if tt.has(message.Lite01 + v(i)) {
				got[i] = 'y'
			}
		}
		if string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestStreams is the table of moq-lite 4.1.
func TestStreams(t *testing.T) {
	want := map[message.Version][]message.StreamType{
		message.Lite01: {1, 2},
		message.Lite02: {1, 2},
		message.Lite03: {1, 2, 4},
		message.Lite04: {1, 2, 4, 5},
		message.Lite05: {1, 2, 3, 4, 5, 6},
		message.Lite06: {1, 2, 3, 4, 5, 6},
	}
	for v, types := range want {
		var got []message.StreamType
		for typ := range message.StreamType(64) {
			if v.HasStream(typ) {
				got = append(got, typ)
			}
		}
		if diff := cmp.Diff(types, got); diff != "" {
			t.Errorf("%v: %s", v, diff)
		}
		for typ := range message.UniType(64) {
			if has := typ == message.UniGroup || typ == message.UniSetup && v >= message.Lite05; v.HasUniStream(typ) != has {
				t.Errorf("%v: unidirectional %v: %v", v, typ, !has)
			}
		}
	}
}

func TestTokensAndCodes(t *testing.T) {
	for v, want := range map[message.Version]struct {
		token string
		code  uint64
	}{
		message.Lite01: {"moql", 0xff0dad01},
		message.Lite02: {"moql", 0xff0dad02},
		message.Lite03: {"moq-lite-03", 0xff0dad03},
		message.Lite06: {"moq-lite-06", 0xff0dad06},
	} {
		if v.Token() != want.token || v.Code() != want.code {
			t.Errorf("%v: %s, %#x", v, v.Token(), v.Code())
		}
	}
}
