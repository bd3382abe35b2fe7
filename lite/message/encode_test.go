package message_test

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/wire"
)

const above = wire.MaxVarint + 1 // what no varint holds

func manyHops(n int) (hops []message.Hop) {
	for i := range n {
		hops = append(hops, uint64(i)+1)
	}
	return hops
}

// What cannot be said correctly is not said at all.
func TestEncodersRefuse(t *testing.T) {
	deep := strings.Repeat("a/", 33)
	params := make([]message.Param, 65)
	for i := range params {
		params[i].ID = uint64(i)
	}
	for _, tt := range []struct {
		name    string
		m       message.Encoder
		version message.Version
		want    error
	}{
		{"hop of SETUP", message.Setup{Hop: above}, message.Lite06, wire.ErrRange},
		{"path of SETUP", message.Setup{HasPath: true, Path: "\xff"}, message.Lite06, wire.ErrUTF8},
		{"SETUP above its limit", message.Setup{HasPath: true, Path: strings.Repeat("x", 65536)}, message.Lite06, wire.ErrTooLarge},
		{"SETUP on 04", message.Setup{}, message.Lite04, message.ErrVersion},
		{"CLIENT_SETUP above 16 bits", message.ClientSetup{Params: []message.Param{{ID: 1, Bytes: make([]byte, 65536)}}}, message.Lite02, wire.ErrTooLarge},
		{"many parameters", message.ServerSetup{Params: params}, message.Lite02, message.ErrTooManyParams},
		{"parameter twice", message.ClientSetup{Params: []message.Param{{ID: 2}, {ID: 2}}}, message.Lite02, message.ErrParam},
		{"deep prefix", message.AnnounceRequest{Prefix: deep}, message.Lite06, paths.ErrTooDeep},
		{"deep suffix", message.Announce{Suffix: deep}, message.Lite01, paths.ErrTooDeep},
		{"deep broadcast", message.Subscribe{Broadcast: deep}, message.Lite03, paths.ErrTooDeep},
		{"deep broadcast of TRACK", message.Track{Broadcast: deep}, message.Lite05, paths.ErrTooDeep},
		{"deep broadcast of FETCH", message.Fetch{Broadcast: deep}, message.Lite05, paths.ErrTooDeep},
		{"wildcard", message.Announce{Suffix: "a/*"}, message.Lite06, message.ErrWildcard},
		{"wildcard in the initial set", message.AnnounceInit{Suffixes: []string{"a", "**/b"}}, message.Lite01, message.ErrWildcard},
		{"ANNOUNCE_INIT on 03", message.AnnounceInit{}, message.Lite03, message.ErrVersion},
		{"ANNOUNCE_OK on 04", message.AnnounceOK{}, message.Lite04, message.ErrVersion},
		{"33 hops", message.Announce{Hops: manyHops(33)}, message.Lite04, message.ErrTooManyHops},
		{"33 hops on 06", message.Announce{Hops: manyHops(33)}, message.Lite06, message.ErrTooManyHops},
		{"hop count 33", message.Announce{HopCount: 33}, message.Lite03, message.ErrTooManyHops},
		{"hop twice", message.Announce{Hops: []message.Hop{7, 0, 0, 7}}, message.Lite05, message.ErrRepeatedHop},
		{"large hop", message.Announce{Hops: []message.Hop{above}}, message.Lite05, wire.ErrRange},
		{"restart on 05", message.Announce{Kind: message.AnnounceRestart}, message.Lite05, message.ErrVersion},
		{"unknown announcement", message.Announce{Kind: message.AnnounceUnknown}, message.Lite06, message.ErrType},
		{"end frame without end group", message.Subscribe{Bounds: message.Bounds{EndFrame: message.Some(1)}}, message.Lite06, message.ErrBounds},
		{"end frame in an update", message.SubscribeUpdate{Bounds: message.Bounds{EndFrame: message.Some(1)}}, message.Lite06, message.ErrBounds},
		{"start that no option holds", message.Subscribe{Bounds: message.Bounds{StartGroup: message.Some(wire.MaxVarint)}}, message.Lite05, wire.ErrRange},
		{"negative max age", message.SubscribeUpdate{Bounds: message.Bounds{MaxAge: -time.Millisecond}}, message.Lite06, wire.ErrRange},
		{"SUBSCRIBE_UPDATE on 02", message.SubscribeUpdate{}, message.Lite02, message.ErrVersion},
		{"SUBSCRIBE_OK on 05", message.SubscribeOK{}, message.Lite05, message.ErrVersion},
		{"SUBSCRIBE_START on 04", message.SubscribeStart{}, message.Lite04, message.ErrVersion},
		{"SUBSCRIBE_END on 04", message.SubscribeEnd{}, message.Lite04, message.ErrVersion},
		{"SUBSCRIBE_DROP on 02", message.SubscribeDrop{}, message.Lite02, message.ErrVersion},
		{"TRACK on 04", message.Track{}, message.Lite04, message.ErrVersion},
		{"track that is not UTF-8", message.Track{Track: "\xff"}, message.Lite05, wire.ErrUTF8},
		{"timescale 0", message.TrackInfo{}, message.Lite05, message.ErrTimescale},
		{"FETCH on 02", message.Fetch{}, message.Lite02, message.ErrVersion},
		{"inverted FETCH", message.Fetch{StartFrame: 2, EndFrame: message.Some(1)}, message.Lite06, message.ErrBounds},
		{"start frame on 05", message.Group{StartFrame: 1}, message.Lite05, message.ErrVersion},
		{"large sequence", message.Group{Sequence: above}, message.Lite01, wire.ErrRange},
		{"datagram on 04", message.Datagram{}, message.Lite04, message.ErrVersion},
		{"large datagram", message.Datagram{Payload: make([]byte, 65536)}, message.Lite06, message.ErrFrameTooLarge},
		{"PROBE on 02", message.Probe{}, message.Lite02, message.ErrVersion},
		{"GOAWAY on 03", message.Goaway{}, message.Lite03, message.ErrVersion},
		{"long uri", message.Goaway{URI: strings.Repeat("x", 8193)}, message.Lite06, wire.ErrTooLarge},
		{"SESSION_INFO on 03", message.SessionInfo{}, message.Lite03, message.ErrVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := tt.m.Append([]byte("before"), tt.version)
			var me *message.Error
			if !errors.As(err, &me) || !errors.Is(err, tt.want) || me.Version != tt.version {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if string(b) != "before" {
				t.Errorf("slice is %q", b)
			}
		})
	}
}

// The limits themselves are allowed.
func TestEncodersAllowTheLimits(t *testing.T) {
	for _, m := range []message.Encoder{
		message.Goaway{URI: strings.Repeat("x", message.MaxURI)},
		message.AnnounceRequest{Prefix: strings.Repeat("a/", 32)},
		message.Announce{Suffix: "a/b*/***", Hops: manyHops(32), Warm: 1 << 63, Cold: 1 << 63},
		message.Announce{Hops: make([]message.Hop, 32)},
		message.Datagram{Payload: make([]byte, message.MaxDatagramPayload), Timestamp: message.MaxTimestamp},
		message.Setup{HasCost: true, Cost: 1 << 63, HasPath: true, Path: strings.Repeat("x", 65500)},
		message.Subscribe{ID: wire.MaxVarint, Track: strings.Repeat("t", 100_000)},
	} {
		b, err := m.Append(nil, message.Lite06)
		if err != nil {
			t.Errorf("%T: %v", m, err)
			continue
		}
		r := bufio.NewReader(bytes.NewReader(b))
		switch m := m.(type) {
		case message.Announce:
			if got, err := message.ReadAnnounce(r, message.Lite06); err != nil || m.Warm > 0 && got.Warm != wire.MaxVarint {
				t.Errorf("%+v, %v", got, err)
			}
		case message.Goaway:
			if _, err := read(r, message.Lite06, &m); err != nil {
				t.Error(err)
			}
		case message.Setup:
			if _, err := read(r, message.Lite06, &m); err != nil || m.Cost != wire.MaxVarint {
				t.Error(err)
			}
		}
	}
}

func TestProbeNeverRoundsToUnknown(t *testing.T) {
	b, err := message.Probe{RTT: time.Microsecond}.Append(nil, message.Lite06)
	if want := []byte{2, 0, 1}; err != nil || !bytes.Equal(b, want) {
		t.Errorf("got %x, %v, want %x", b, err, want)
	}
}

func TestPathsAreNormalized(t *testing.T) {
	b, err := message.Track{Broadcast: "//a///b/", Track: "//t/"}.Append(nil, message.Lite05)
	if want := "\x09\x03a/b\x04//t/"; err != nil || string(b) != want {
		t.Errorf("got %q, %v, want %q", b, err, want)
	}
	var m message.Track
	if err := m.Decode([]byte("\x06/a//b/\x00"), message.Lite05); err != nil || m.Broadcast != "a/b" {
		t.Errorf("got %+v, %v", m, err)
	}
}

// A session encodes into a buffer that it keeps.
func TestEncodersDoNotAllocate(t *testing.T) {
	b := make([]byte, 0, 1024)
	hops := manyHops(5)
	payload := make([]byte, 100)
	const v = message.Lite06
	for name, f := range map[string]func() ([]byte, error){
		"ANNOUNCE": func() ([]byte, error) {
			return message.Announce{Suffix: "room/alice", Hops: hops, Warm: 3, Cold: 9}.Append(b, v)
		},
		"SUBSCRIBE": func() ([]byte, error) {
			return message.Subscribe{ID: 9, Broadcast: "room/alice", Track: "video"}.Append(b, v)
		},
		"SETUP":    func() ([]byte, error) { return message.Setup{Hop: 1 << 50, Probe: 1}.Append(b, v) },
		"GROUP":    func() ([]byte, error) { return message.Group{Subscribe: 5, Sequence: 1 << 40}.Append(b, v) },
		"DATAGRAM": func() ([]byte, error) { return message.Datagram{Payload: payload}.Append(b, v) },
		"FRAME": func() ([]byte, error) {
			return message.AppendFrameHeader(b, v, message.FrameHeader{Delta: -40, Size: 900})
		},
	} {
		n := testing.AllocsPerRun(100, func() {
			if _, err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestAnnounceable(t *testing.T) {
	for suffix, want := range map[string]bool{
		"": true, "a": true, "a*": true, "***": true, "a/b*c": true,
		"*": false, "**": false, "a/*": false, "*/a": false, "a/**/b": false,
	} {
		if got := message.Announceable(suffix); got != want {
			t.Errorf("%q: %v", suffix, got)
		}
	}
}

// A peer cannot make us allocate a large list with a few bytes.
func TestAnnounceInitIsBounded(t *testing.T) {
	body := wire.AppendVarint(nil, message.MaxInit+1)
	body = append(body, make([]byte, message.MaxInit+1)...)
	var m message.AnnounceInit
	if err := m.Decode(body, message.Lite01); !errors.Is(err, message.ErrTooManySuffixes) {
		t.Errorf("got %v", err)
	}
	if err := m.Decode(wire.AppendVarint(nil, message.MaxInit), message.Lite01); !errors.Is(err, wire.ErrTruncated) {
		t.Errorf("got %v", err)
	}
}
