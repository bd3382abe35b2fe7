package lite

import (
	"sync"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// tallied counts what goes over a control stream, by what the stream is about.
type tallied struct {
	transport.Stream
	counters *session.Counters
	class    session.ControlClass
	unknown  bool   // the class has not been read yet
	early    uint64 // read until then
}

// tally counts a stream of ours.
func (s *Session) tally(st transport.Stream, class session.ControlClass) *tallied {
	return &tallied{Stream: st, counters: s.counters, class: class}
}

// tallyLater counts a stream of the peer, whose type comes first.
func (s *Session) tallyLater(st transport.Stream) *tallied {
	return &tallied{Stream: st, counters: s.counters, unknown: true}
}

// is says what the stream is about. It must be called before anybody writes, or reads concurrently.
func (t *tallied) is(class session.ControlClass) {
	t.class, t.unknown = class, false
	t.counters.ControlReceived[class].Add(t.early)
}

// Read implements transport.ReceiveStream.
func (t *tallied) Read(p []byte) (int, error) {
	n, err := t.Stream.Read(p)
	switch {
	case n == 0:
	case t.unknown:
		t.early += uint64(n)
	default:
		t.counters.ControlReceived[t.class].Add(uint64(n))
	}
	return n, err
}

// Write implements transport.SendStream.
func (t *tallied) Write(p []byte) (int, error) {
	n, err := t.Stream.Write(p)
	t.counters.ControlSent[t.class].Add(uint64(n))
	return n, err
}

// content is the stream without the count, for what is no control message.
func (t *tallied) content() transport.Stream { return t.Stream }

// classOf is what a stream of a type is about.
func classOf(typ message.StreamType) session.ControlClass {
	switch typ {
	case message.StreamAnnounce:
		return session.ControlAnnounce
	case message.StreamSubscribe:
		return session.ControlSubscribe
	case message.StreamFetch:
		return session.ControlFetch
	case message.StreamTrack:
		return session.ControlTrackInfo
	case message.StreamProbe:
		return session.ControlProbe
	case message.StreamGoaway:
		return session.ControlGoaway
	default:
		return session.ControlOther
	}
}

// viewers counts the broadcasts that one end watches, each once however many of its tracks.
type viewers struct {
	mu     sync.Mutex
	tracks map[string]int // by path; bounded like subscriptions
}

func (v *viewers) open(path string, c count) {
	v.mu.Lock()
	if v.tracks == nil {
		v.tracks = make(map[string]int)
	}
	v.tracks[path]++
	first := v.tracks[path] == 1
	v.mu.Unlock()
	c.opened(first)
}

func (v *viewers) close(path string, c count) {
	v.mu.Lock()
	v.tracks[path]--
	last := v.tracks[path] == 0
	if last {
		delete(v.tracks, path)
	}
	v.mu.Unlock()
	c.closed(last)
}
