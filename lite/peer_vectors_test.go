package lite_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
)

// invalidVector is a message that must be rejected (see package message).
type invalidVector struct {
	Version, Message, Hex, Why string
}

func (vec *invalidVector) version(t *testing.T) message.Version {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(vec.Version, "lite-"))
	if err != nil {
		t.Fatal(err)
	}
	return message.Version(n)
}

// TestInvalidVectors sends what a session must reject where it belongs, and wants the reaction of moq-lite 4.2 and 10: on
// the stream where that is enough, else at the session.
func TestInvalidVectors(t *testing.T) {
	b, err := os.ReadFile("message/testdata/moq-lite.json")
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
	for _, vec := range file.Invalid {
		t.Run(vec.Version+"/"+vec.Message+"/"+vec.Why, func(t *testing.T) {
			raw, err := hex.DecodeString(vec.Hex)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { rejects(t, vec, raw) })
		})
	}
}

// rejects sends raw to a session and wants it to be rejected.
func rejects(t *testing.T, vec invalidVector, raw []byte) {
	t.Helper()
	v := vec.version(t)
	switch vec.Message {
	case "SETUP":
		r := accept(t, v, options{})
		r.OpenUni(message.UniSetup, raw)
		r.wantHandshakeError(lite.SessionViolation, nil)
	case "ANNOUNCE_BROADCAST", "ANNOUNCE_START":
		r, s := listening(t, v, "", options{})
		s.Send(raw)
		r.WantClose(lite.SessionViolation)
	case "SUBSCRIBE response":
		r := accept(t, v, options{}).greet()
		s := r.subscribe(media.Subscription{}, message.Bounds{})
		s.Send(raw).AnyStop()
		s.wantEnd(media.ErrMalformed)
		r.WantAlive()
	case "TRACK_INFO":
		r := accept(t, v, options{}).greet()
		s, ch := r.trackInfo()
		s.Send(raw).AnyStop()
		if got := <-ch; got.err == nil {
			t.Errorf("accepted as %+v", got.value)
		}
		r.WantAlive()
	case "FRAMES":
		r, s := subscribed(t, v, options{})
		r.group(1, raw).FIN().AnyStop()
		r.WantAlive()
		s.wantOpen()
		if got, err := s.readGroup(1); err == nil || len(got) != 0 {
			t.Errorf("group holds %q, %v", got, err)
		}
	case "STREAM_TYPE (uni)":
		r := accept(t, v, options{}).greet()
		r.OpenUni(raw).WantStop(lite.StreamCancelled)
		r.WantIdle()
	default:
		r := accept(t, v, options{}).greet()
		parts := []any{raw}
		if typ, ok := opener[vec.Message]; ok {
			parts = []any{typ, raw}
		}
		s := r.Open(parts...)
		s.AnyStop().WantReset(lite.StreamCancelled)
		r.WantAlive()
		r.wantLog()
	}
}

// opener is the stream that a message opens.
var opener = map[string]message.StreamType{
	"ANNOUNCE_REQUEST": message.StreamAnnounce,
	"SUBSCRIBE":        message.StreamSubscribe,
	"TRACK":            message.StreamTrack,
	"FETCH":            message.StreamFetch,
	"GOAWAY":           message.StreamGoaway,
}
