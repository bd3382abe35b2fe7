//go:build e2e

package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// invalidVector is a message that must be rejected (see package message).
type invalidVector struct {
	Version, Message, Hex, Why string
}

func invalidVectors(t *testing.T) []invalidVector {
	t.Helper()
	b, err := os.ReadFile("../../lite/message/testdata/moq-lite.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Invalid []invalidVector }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Invalid) == 0 {
		t.Fatal("no vectors")
	}
	return file.Invalid
}

func (vec *invalidVector) version(t *testing.T) message.Version {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(vec.Version, "lite-"))
	if err != nil {
		t.Fatal(err)
	}
	return message.Version(n)
}

// rounds is how often everything is sent; memory is compared from the end of the first round on.
const rounds = 2

// TestInvalidMessages sends every message that a relay must reject over both carriers, on the stream where it belongs.
// The reaction is that of moq-lite 4.2 and 10, on the smallest scope; a publisher and a viewer beside it lose nothing,
// and the relay keeps nothing.
func TestInvalidMessages(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	vectors := invalidVectors(t)
	before := loadOf(t, r)
	var after []load
	for range rounds {
		for _, c := range carriers {
			for _, vec := range vectors {
				name := fmt.Sprintf("%s/%s/%s/%s", c, vec.Version, vec.Message, vec.Why)
				t.Run(name, func(t *testing.T) { g.rejects(t, c, vec) })
			}
		}
		if t.Failed() {
			return
		}
		after = append(after, loadOf(t, r))
	}
	if after[rounds-1].memory > after[0].memory+maxGrowth {
		t.Errorf("the relay grows: %+v", after)
	}
	wantLoad(t, r, before, 2*patience)
	check()
}

// garbage is what the strangers of a test share.
type garbage struct {
	r       drive.Relay
	dialers map[message.Version]*endpoint.Dialer
	viewer  *client.Client // asks for what strangers announce
	baits   int
}

func newGarbage(t *testing.T, r drive.Relay) *garbage {
	t.Helper()
	g := &garbage{r: r, dialers: make(map[message.Version]*endpoint.Dialer)}
	for v := message.Lite01; v <= message.Lite06; v++ {
		g.dialers[v] = dialerTo(t, r, v)
	}
	c, err := client.Dial(t.Context(), r.MOQT(), client.Config{Dialer: g.dialers[message.Lite06], Role: client.RoleSubscriber})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.TrackInfo(t.Context(), "healthy", "video"); err != nil { // the relay counts the session now
		t.Fatal(err)
	}
	g.viewer = c
	return g
}

// meet dials the relay without a handshake.
func (g *garbage) meet(t *testing.T, c carrier, v message.Version) *stranger {
	t.Helper()
	return meet(t, g.dialers[v], target(t, g.r, c), v)
}

// rejects sends one invalid message and wants it to be rejected.
func (g *garbage) rejects(t *testing.T, c carrier, vec invalidVector) {
	raw, err := hex.DecodeString(vec.Hex)
	if err != nil {
		t.Fatal(err)
	}
	s := g.meet(t, c, vec.version(t))
	switch vec.Message {
	case "SETUP":
		s.openUni(message.UniSetup, raw)
		s.wantClose(lite.SessionViolation)
		return
	case "ANNOUNCE_BROADCAST", "ANNOUNCE_START":
		st := s.greet().announce("fine")
		s.send(st, raw)
		s.wantClose(lite.SessionViolation)
		return
	case "TRACK_INFO":
		g.badTrackInfo(t, s.greet(), raw)
	case "SUBSCRIBE response":
		g.badAnswer(t, s.greet(), raw)
	case "FRAMES":
		g.badFrames(t, s.greet(), raw, strings.HasPrefix(vec.Why, "stream ends"))
	case "STREAM_TYPE (uni)":
		s.greet().wantAlive() // before SETUP, which is on another stream, it would end the session
		s.wantStop(s.openUni(raw), lite.StreamCancelled)
	default:
		parts := []any{raw}
		if typ, ok := opener[vec.Message]; ok {
			parts = []any{typ, raw}
		}
		st := s.greet().open(parts...)
		s.wantReset(st, lite.StreamCancelled)
		s.wantStop(st, lite.StreamCancelled)
	}
	s.wantAlive()
}

// opener is the stream that a message opens.
var opener = map[string]message.StreamType{
	"ANNOUNCE_REQUEST": message.StreamAnnounce,
	"SUBSCRIBE":        message.StreamSubscribe,
	"TRACK":            message.StreamTrack,
	"FETCH":            message.StreamFetch,
	"GOAWAY":           message.StreamGoaway,
}

// lure announces a broadcast and has the viewer ask for a track of it as soon as the relay knows it. What the viewer
// ends with comes from the channel.
func (g *garbage) lure(t *testing.T, s *stranger, view func(ctx context.Context, path string) error) <-chan error {
	t.Helper()
	g.baits++
	path := fmt.Sprintf("bait/%d", g.baits)
	s.announce(path)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	seen := make(chan error, 1)
	go func() {
		for {
			err := view(ctx, path)
			if !errors.Is(err, client.ErrUnroutable) {
				seen <- err
				return
			}
			time.Sleep(5 * time.Millisecond) // the announcement is on its way
		}
	}()
	return seen
}

// wantFailure wants the viewer's request to be refused, and the viewer to stay.
func (g *garbage) wantFailure(t *testing.T, seen <-chan error) {
	t.Helper()
	err := <-seen
	var request *client.RequestError
	if !errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded) || g.viewer.Err() != nil {
		t.Errorf("the viewer sees %v, %v", err, g.viewer.Err())
	}
}

// badTrackInfo answers TRACK with raw.
func (g *garbage) badTrackInfo(t *testing.T, s *stranger, raw []byte) {
	t.Helper()
	seen := g.lure(t, s, func(ctx context.Context, path string) error {
		_, err := g.viewer.TrackInfo(ctx, path, "video")
		return err
	})
	s.send(s.request(message.StreamTrack, new(message.Track)), raw)
	g.wantFailure(t, seen)
}

// subscribed answers TRACK properly, where the version has it, and returns the relay's subscription.
func (s *stranger) subscribed() (transport.Stream, uint64) {
	s.t.Helper()
	if s.v.HasTrackInfo() {
		st := s.request(message.StreamTrack, new(message.Track))
		s.send(st, message.TrackInfo{Priority: 127, MaxAge: 5 * time.Second, Timescale: 1000})
		_ = st.Close()
	}
	var m message.Subscribe
	st := s.request(message.StreamSubscribe, &m)
	if s.v.HasSubscribeOK() {
		s.send(st, message.SubscribeOK{})
	}
	return st, m.ID
}

// badAnswer answers SUBSCRIBE with raw.
func (g *garbage) badAnswer(t *testing.T, s *stranger, raw []byte) {
	t.Helper()
	seen := g.lure(t, s, func(ctx context.Context, path string) error {
		track, err := g.viewer.Subscribe(ctx, path, "video", client.Subscription{})
		if err != nil {
			return err
		}
		defer track.Close()
		_, err = track.NextGroup(ctx)
		return err
	})
	st, _ := s.subscribed()
	s.send(st, raw)
	s.wantStop(st, lite.StreamCancelled)
	g.wantFailure(t, seen)
}

// badFrames sends a group that goes wrong, and then a proper one. Of the first nobody may see a frame.
func (g *garbage) badFrames(t *testing.T, s *stranger, raw []byte, ends bool) {
	t.Helper()
	seen := g.lure(t, s, func(ctx context.Context, path string) error {
		track, err := g.viewer.Subscribe(ctx, path, "video", client.Subscription{MaxAge: time.Minute})
		if err != nil {
			return err
		}
		defer track.Close()
		return firstFrame(ctx, track, 2)
	})
	_, id := s.subscribed()
	st := s.openUni(message.UniGroup, message.Group{Subscribe: id, Sequence: 1}, raw)
	if ends {
		_ = st.Close()
	} else {
		s.wantStop(st, lite.StreamMalformed)
	}
	frame, err := message.AppendFrameHeader(nil, s.v, message.FrameHeader{Delta: 1000, Size: 4})
	if err != nil {
		t.Fatal(err)
	}
	st = s.openUni(message.UniGroup, message.Group{Subscribe: id, Sequence: 2}, append(frame, "fine"...))
	_ = st.Close()
	if err := <-seen; err != nil {
		t.Errorf("the viewer sees %v", err)
	}
}

// firstFrame reads until a group begins with a frame, which must be that of the group that is wanted.
func firstFrame(ctx context.Context, track *client.TrackReader, want uint64) error {
	for {
		g, err := track.NextGroup(ctx)
		if err != nil {
			return err
		}
		frame, err := g.ReadFrame(ctx)
		g.Close()
		switch {
		case ctx.Err() != nil:
			return err
		case g.Sequence() == want && err == nil && string(frame.Payload) == "fine":
			return nil
		case g.Sequence() == want || err == nil:
			return fmt.Errorf("group %d: %q, %w", g.Sequence(), frame.Payload, err)
		}
	}
}
