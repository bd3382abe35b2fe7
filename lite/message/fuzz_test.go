package message_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/wire"
)

// Each decoder has a target. Its seeds under testdata/fuzz are the vectors, valid and invalid: write them again with
// go test -run TestSeeds -update.
//
// The property is the same everywhere. What a decoder accepts can be encoded, apart from names that must not be
// announced, and reads back as the same message.

var update = flag.Bool("update", false, "write the seed corpus again")

func fuzzBody[T any, P interface {
	*T
	message.Decoder
}](f *testing.F) {
	f.Helper()
	f.Fuzz(func(t *testing.T, version uint8, body []byte) {
		v := validVersion(version)
		m := P(new(T))
		if m.Decode(body, v) != nil {
			return
		}
		b, err := any(*m).(message.Encoder).Append(nil, v)
		if errors.Is(err, message.ErrWildcard) {
			return
		} else if err != nil {
			t.Fatalf("decoded but cannot be encoded: %v", err)
		}
		again := P(new(T))
		r := bufio.NewReader(bytes.NewReader(b))
		switch again := any(again).(type) {
		case *message.ClientSetup:
			*again, err = message.ReadClientSetup(r)
		case *message.ServerSetup:
			*again, err = message.ReadServerSetup(r)
		case *message.Datagram:
			err = again.Decode(b, v)
		case message.Decoder:
			err = message.Read(r, v, again)
		}
		if err != nil {
			t.Fatalf("%+v does not read back: %v", *m, err)
		}
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v\nreads back as\n%+v", *m, *again)
		}
	})
}

// validVersion maps all numbers to versions, and the versions to themselves.
func validVersion(n uint8) message.Version {
	return message.Lite01 + message.Version(n-1)%message.Version(message.Lite06)
}

func FuzzSetup(f *testing.F)           { fuzzBody[message.Setup](f) }
func FuzzClientSetup(f *testing.F)     { fuzzBody[message.ClientSetup](f) }
func FuzzServerSetup(f *testing.F)     { fuzzBody[message.ServerSetup](f) }
func FuzzSessionInfo(f *testing.F)     { fuzzBody[message.SessionInfo](f) }
func FuzzAnnounceRequest(f *testing.F) { fuzzBody[message.AnnounceRequest](f) }
func FuzzAnnounceInit(f *testing.F)    { fuzzBody[message.AnnounceInit](f) }
func FuzzAnnounceOK(f *testing.F)      { fuzzBody[message.AnnounceOK](f) }
func FuzzSubscribe(f *testing.F)       { fuzzBody[message.Subscribe](f) }
func FuzzSubscribeUpdate(f *testing.F) { fuzzBody[message.SubscribeUpdate](f) }
func FuzzTrack(f *testing.F)           { fuzzBody[message.Track](f) }
func FuzzTrackInfo(f *testing.F)       { fuzzBody[message.TrackInfo](f) }
func FuzzFetch(f *testing.F)           { fuzzBody[message.Fetch](f) }
func FuzzGroup(f *testing.F)           { fuzzBody[message.Group](f) }
func FuzzDatagram(f *testing.F)        { fuzzBody[message.Datagram](f) }
func FuzzProbe(f *testing.F)           { fuzzBody[message.Probe](f) }
func FuzzGoaway(f *testing.F)          { fuzzBody[message.Goaway](f) }

func FuzzAnnounce(f *testing.F) {
	f.Fuzz(func(t *testing.T, version uint8, typ uint64, body []byte) {
		v := validVersion(version)
		m, err := message.DecodeAnnounce(typ, body, v)
		if err != nil || m.Kind == message.AnnounceUnknown {
			return
		}
		b, err := m.Append(nil, v)
		if errors.Is(err, message.ErrWildcard) {
			return
		} else if err != nil {
			t.Fatalf("decoded but cannot be encoded: %v", err)
		}
		again, err := message.ReadAnnounce(bufio.NewReader(bytes.NewReader(b)), v)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v\nreads back as\n%+v, %v", m, again, err)
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Fuzz(func(t *testing.T, version uint8, typ uint64, body []byte) {
		v := validVersion(version)
		m, err := message.DecodeResponse(typ, body, v)
		if err != nil {
			return
		}
		b, err := m.Append(nil, v)
		if err != nil {
			t.Fatalf("decoded but cannot be encoded: %v", err)
		}
		again, err := message.ReadResponse(bufio.NewReader(bytes.NewReader(b)), v)
		if err != nil || m != again {
			t.Fatalf("%+v\nreads back as\n%+v, %v", m, again, err)
		}
	})
}

// FuzzFrames also compares the two ways to read a frame.
func FuzzFrames(f *testing.F) {
	f.Fuzz(func(t *testing.T, version uint8, stream []byte) {
		v := validVersion(version)
		got, err := readFrames(bufio.NewReaderSize(bytes.NewReader(stream), 16), v)
		var rest frames
		b, ts := stream, uint64(0)
		for len(b) > 0 {
			h, n, herr := message.ParseFrameHeader(b, v)
			if herr != nil || h.Size > uint64(len(b)-n) {
				break
			}
			var ok bool
			if ts, ok = message.NextTimestamp(ts, h.Delta); !ok {
				break
			}
			rest = append(rest, frame{ts, append([]byte{}, b[n:n+int(h.Size)]...)})
			b = b[n+int(h.Size):]
		}
		if !reflect.DeepEqual(got, rest) || (err == nil) != (len(b) == 0) {
			t.Fatalf("FrameReader: %v, %v\nParseFrameHeader: %v with %d bytes left", got, err, rest, len(b))
		}
		if err != nil {
			return
		}
		encoded, err := got.Append(nil, v)
		if errors.Is(err, wire.ErrRange) { // two deltas that make one too large
			return
		}
		if again, err2 := readFrames(bufio.NewReader(bytes.NewReader(encoded)), v); err != nil || err2 != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%v\nreads back as\n%v, %v, %v", got, again, err, err2)
		}
	})
}

// FuzzStreamTypes reads what opens a stream.
func FuzzStreamTypes(f *testing.F) {
	f.Fuzz(func(t *testing.T, version uint8, stream []byte) {
		v := validVersion(version)
		if typ, err := message.ReadStreamType(bytes.NewReader(stream), v); err == nil && !v.HasStream(typ) {
			t.Errorf("%v accepts stream %v", v, typ)
		}
		if typ, err := message.ReadUniType(bytes.NewReader(stream), v); err == nil && !v.HasUniStream(typ) {
			t.Errorf("%v accepts unidirectional stream %v", v, typ)
		}
	})
}

// TestSeeds checks that the corpora hold the vectors.
func TestSeeds(t *testing.T) {
	file := loadVectors(t)
	seeds := map[corpusFile]string{} // to its path
	for _, vec := range file.Vectors {
		head, body, _ := split(t, vec)
		seed(seeds, vec.Message, strings.ReplaceAll(vec.ID, "/", "-"), vec.Version, head, body)
	}
	for i, vec := range file.Invalid {
		name := fmt.Sprintf("invalid-%d", i)
		b := []byte(vec.Hex)
		n := 0
		switch _, size, err := wire.ParseVarint(b); {
		case vec.Message == "FRAMES" || strings.HasPrefix(vec.Message, "STREAM_TYPE"):
		case fuzzTarget(vec.Message) == "FuzzAnnounce" && message.Version(vec.Version).HasAnnounceIDs(), vec.Message == "SUBSCRIBE response":
			n = size + 1 // none of them has a long body
		case err == nil:
			n = size
		}
		seed(seeds, vec.Message, name, vec.Version, b[:n], b[n:])
	}
	for i, vec := range file.Streams {
		if strings.HasPrefix(vec.Messages[0], "STREAM_TYPE") {
			seed(seeds, "STREAM_TYPE", fmt.Sprintf("stream-%d", i), vec.Version, nil, vec.Hex[:1])
		}
	}
	for file, path := range seeds {
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(file.content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != file.content {
			t.Errorf("%s is not what the vector says (%v): run with -update", path, err)
		}
	}
}

type corpusFile struct{ target, content string }

// seed adds a corpus file unless there is one with the same content.
func seed(seeds map[corpusFile]string, msg, name string, v version, head, body []byte) {
	target := fuzzTarget(msg)
	content := fmt.Sprintf("go test fuzz v1\nbyte('\\x%02x')\n", uint8(v))
	if target == "FuzzAnnounce" || target == "FuzzResponse" {
		typ, _, _ := wire.ParseVarint(head) // on versions without a type it is not looked at
		content += fmt.Sprintf("uint64(%d)\n", typ)
	}
	content += fmt.Sprintf("[]byte(%+q)\n", body)
	path := filepath.Join("testdata", "fuzz", target, name)
	file := corpusFile{target, content}
	if old, ok := seeds[file]; !ok || path < old {
		seeds[file] = path
	}
}

// fuzzTarget is the target for a message of the vectors.
func fuzzTarget(msg string) string {
	switch {
	case strings.HasPrefix(msg, "STREAM_TYPE"):
		return "FuzzStreamTypes"
	case strings.HasPrefix(msg, "SUBSCRIBE") && msg != "SUBSCRIBE" && msg != "SUBSCRIBE_UPDATE":
		return "FuzzResponse"
	}
	switch msg {
	case "ANNOUNCE_BROADCAST", "ANNOUNCE_START", "ANNOUNCE_END", "ANNOUNCE_RESTART", "ANNOUNCE_UNKNOWN":
		return "FuzzAnnounce"
	case "ANNOUNCE_OK":
		return "FuzzAnnounceOK"
	}
	name := "Fuzz"
	for word := range strings.SplitSeq(msg, "_") {
		name += word[:1] + strings.ToLower(word[1:])
	}
	return name
}
