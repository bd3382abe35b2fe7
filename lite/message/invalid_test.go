package message_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/wire"
)

func TestInvalidVectors(t *testing.T) {
	for _, vec := range loadVectors(t).Invalid {
		v := message.Version(vec.Version)
		t.Run(v.String()+"/"+vec.Message+"/"+vec.Why, func(t *testing.T) {
			m, err := readMessage(bufio.NewReader(bytes.NewReader(vec.Hex)), vec.Message, v)
			if err == nil {
				t.Fatalf("accepted as %+v", m)
			}
			if errors.Is(err, io.EOF) {
				t.Fatal("taken for the end of the stream")
			}
			if want := rejection(vec.Why); want != nil && !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

// rejection is the error that a reason stands for. Vectors must be rejected for what is wrong with them.
func rejection(why string) error {
	for _, r := range []struct {
		part string
		err  error
	}{
		{"33 path parts", paths.ErrTooDeep},
		{"not UTF-8", wire.ErrUTF8},
		{"longer than the message", wire.ErrTruncated},
		{"trailing byte", wire.ErrTrailing},
		{"rejected from", wire.ErrTooLarge},
		{"status", message.ErrStatus},
		{"ends inside a payload", message.ErrFrameTruncated},
		{"unknown", message.ErrType},
		{"33 hops", message.ErrTooManyHops},
		{"hop 7 twice", message.ErrRepeatedHop},
		{"duplicate parameter", message.ErrParam},
		{"65 parameters", message.ErrTooManyParams},
		{"empty body", wire.ErrTruncated},
		{"timescale 0", message.ErrTimescale},
		{"missing track name", wire.ErrTruncated},
		{"timestamp would be negative", message.ErrTimestamp},
		{"only one cost", wire.ErrTruncated},
		{"end frame", message.ErrBounds},
	} {
		if strings.Contains(why, r.part) {
			return r.err
		}
	}
	return nil
}

// A truncated vector is enough to reject: no byte after it may be needed.
func TestInvalidVectorsAreRejectedEarly(t *testing.T) {
	for _, vec := range loadVectors(t).Invalid {
		if !strings.Contains(vec.Why, "rejected from the prefix") {
			continue
		}
		t.Run(vec.Message+"/"+vec.Why, func(t *testing.T) {
			more := iotest.ErrReader(errors.New("asked for more"))
			_, err := readMessage(bufio.NewReader(io.MultiReader(bytes.NewReader(vec.Hex), more)), vec.Message, message.Version(vec.Version))
			if !errors.Is(err, wire.ErrTooLarge) {
				t.Errorf("got %v, want %v", err, wire.ErrTooLarge)
			}
		})
	}
	t.Run("GOAWAY", func(t *testing.T) {
		var m message.Goaway
		if err := m.Decode([]byte{0x60, 0x01, 'a'}, message.Lite06); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("got %v, want %v", err, wire.ErrTooLarge)
		}
	})
}

// split separates a vector into what comes before the body, the body, and how to decode a body.
func split(tb testing.TB, vec vector) (head, body []byte, decode func([]byte) error) {
	tb.Helper()
	v := message.Version(vec.Version)
	h := []byte(vec.Hex)
	switch vec.Message {
	case "CLIENT_SETUP":
		return h[:3], h[3:], func(b []byte) error { return new(message.ClientSetup).Decode(b, v) }
	case "SERVER_SETUP":
		return h[:3], h[3:], func(b []byte) error { return new(message.ServerSetup).Decode(b, v) }
	case "DATAGRAM", "FRAMES":
		return nil, h, nil
	}
	typ, n, typed := uint64(0), 0, false
	if strings.HasPrefix(vec.Message, "SUBSCRIBE_") && vec.Message != "SUBSCRIBE_UPDATE" {
		typed = v.HasTypedResponses()
		decode = func(b []byte) error { _, err := message.DecodeResponse(typ, b, v); return err }
	} else if _, ok := buildMessage(vec.Message, vec.Fields).(message.Announce); ok {
		typed = v.HasAnnounceIDs()
		decode = func(b []byte) error { _, err := message.DecodeAnnounce(typ, b, v); return err }
	} else {
		decode = func(b []byte) error {
			r := bufio.NewReader(bytes.NewReader(append(wire.AppendVarint(nil, uint64(len(b))), b...)))
			_, err := readMessage(r, vec.Message, v)
			return err
		}
	}
	if typed {
		typ, n, _ = wire.ParseVarint(h)
	}
	size, m, err := wire.ParseVarint(h[n:])
	if err != nil || size != uint64(len(h)-n-m) {
		tb.Fatalf("length of %s is %d", vec.ID, size)
	}
	return h[:n+m], h[n+m:], decode
}

func TestTruncatedBodiesAreRejected(t *testing.T) {
	for _, vec := range loadVectors(t).Vectors {
		_, body, decode := split(t, vec)
		if decode == nil || vec.Message == "ANNOUNCE_UNKNOWN" { // whose body may be anything
			continue
		}
		if err := decode(body); err != nil {
			t.Fatalf("%s: %v", vec.ID, err)
		}
		for n := range body {
			var me *message.Error
			if err := decode(body[:n]); !errors.As(err, &me) {
				t.Errorf("%s cut to %d bytes: got %v, want a *message.Error", vec.ID, n, err)
			}
		}
		if err := decode(append(bytes.Clone(body), 0)); !errors.Is(err, wire.ErrTrailing) {
			t.Errorf("%s with a byte more: got %v, want %v", vec.ID, err, wire.ErrTrailing)
		}
	}
}

// A stream that ends inside a message is wrong; one that ends before it has just ended; one that fails has failed.
func TestStreamsThatEndInsideAMessage(t *testing.T) {
	failure := errors.New("stream reset")
	for _, vec := range loadVectors(t).Vectors {
		if vec.Message == "DATAGRAM" || vec.Message == "FRAMES" {
			continue
		}
		v := message.Version(vec.Version)
		for n := range vec.Hex {
			_, err := readMessage(bufio.NewReader(bytes.NewReader(vec.Hex[:n])), vec.Message, v)
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			var me *message.Error
			if !errors.Is(err, want) || errors.As(err, &me) != (n > 0) {
				t.Errorf("%s ends after %d bytes: got %v, want %v", vec.ID, n, err, want)
			}
			r := io.MultiReader(bytes.NewReader(vec.Hex[:n]), iotest.ErrReader(failure))
			_, err = readMessage(bufio.NewReader(r), vec.Message, v)
			if !errors.Is(err, failure) || errors.As(err, &me) {
				t.Errorf("%s fails after %d bytes: got %v", vec.ID, n, err)
			}
		}
	}
}

// The messages of one stream follow each other without a gap.
func TestStreamVectors(t *testing.T) {
	for _, s := range loadVectors(t).Streams {
		v := message.Version(s.Version)
		t.Run(v.String()+"/"+s.Stream, func(t *testing.T) {
			r := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(s.Hex)))
			var again []byte
			for _, name := range s.Messages {
				if name == "FIN" {
					continue
				}
				again = copyPart(t, r, again, name, s.Stream, v)
			}
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("%x left over", rest)
			}
			if diff := cmp.Diff([]byte(s.Hex), again); diff != "" {
				t.Errorf("encoded again (-want +got):\n%s", diff)
			}
		})
	}
}

// copyPart reads what a stream vector calls name and appends its encoding to b.
func copyPart(t *testing.T, r *bufio.Reader, b []byte, name, stream string, v message.Version) []byte {
	t.Helper()
	word, _, _ := strings.Cut(name, " ")
	uni := strings.HasSuffix(stream, "(uni)")
	switch {
	case word == "STREAM_TYPE" && uni:
		word = "STREAM_TYPE (uni)"
	case word == "STREAM_TYPE":
		word = "STREAM_TYPE (bidi)"
	case strings.HasPrefix(stream, "announce (publisher") && word != "ANNOUNCE_INIT" && word != "ANNOUNCE_OK":
		word = "ANNOUNCE_BROADCAST"
	case strings.Contains(name, "frames"):
		word = "FRAMES"
	}
	m, err := readMessage(r, word, v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	switch m := m.(type) {
	case message.StreamType:
		return m.Append(b)
	case message.UniType:
		return m.Append(b)
	case message.Encoder:
		if b, err = m.Append(b, v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return b
	default:
		t.Fatalf("%s is a %T", name, m)
		return nil
	}
}
