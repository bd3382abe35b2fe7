package message_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/wire"
)

// TestPrimitives checks the encodings that all messages share: those of package wire directly, paths and hops
// through the shortest message that has one.
func TestPrimitives(t *testing.T) {
	for _, p := range loadVectors(t).Primitives {
		t.Run(p.Kind+"/"+toText(p.Value), func(t *testing.T) {
			got, encoded := codePrimitive(t, p)
			if diff := cmp.Diff(primitiveValue(p), got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]byte(p.Hex), encoded); diff != "" && !p.DecodeOnly {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

func toText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// primitiveValue is the value of a primitive in the type that codePrimitive decodes to.
func primitiveValue(p primitive) any {
	switch p.Kind {
	case "varint":
		return toUint(p.Value)
	case "zigzag":
		n, err := strconv.ParseInt(toTextNumber(p.Value), 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	case "option":
		return fields{"v": p.Value}.option("v")
	case "path":
		return p.Normalized
	case "duration_ms":
		return time.Duration(toUint(p.Value)) * time.Millisecond
	case "hops":
		return toUints(p.Value)
	default:
		return p.Value
	}
}

func toTextNumber(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(v.(json.Number))
}

// codePrimitive decodes the bytes of p, and encodes its value.
func codePrimitive(t *testing.T, p primitive) (got any, encoded []byte) {
	t.Helper()
	r, w := wire.NewReader(p.Hex), wire.NewWriter(nil)
	switch want := primitiveValue(p).(type) {
	case uint64:
		got = r.Varint()
		w.Varint(want)
	case int64:
		got = r.Zigzag()
		w.Zigzag(want)
	case message.Option:
		v, ok := r.Option()
		got = message.Option{Set: ok, Value: v}
		w.Option(want.Value, want.Set)
	case time.Duration:
		got = r.Duration()
		w.Duration(want)
	case bool:
		got = r.Bool()
		w.Bool(want)
	case []uint64:
		return codeHops(t, p.Hex, want)
	case string:
		switch p.Kind {
		case "path":
			return codePath(t, p.Hex, p.Value.(string))
		case "bidi_stream_type":
			got = message.StreamType(r.Varint()).String()
			w.Raw(streamType(want))
		case "uni_stream_type":
			got = message.UniType(r.Varint()).String()
			w.Raw(uniType(want))
		default:
			got = r.String()
			w.String(want)
		}
	default:
		t.Fatalf("unknown kind %s", p.Kind)
	}
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	encoded, err := w.Done()
	if err != nil {
		t.Fatal(err)
	}
	return got, encoded
}

// streamType encodes the type that has this name.
func streamType(name string) []byte {
	for typ := range message.StreamType(64) {
		if typ.String() == name {
			return typ.Append(nil)
		}
	}
	return nil
}

func uniType(name string) []byte {
	for typ := range message.UniType(64) {
		if typ.String() == name {
			return typ.Append(nil)
		}
	}
	return nil
}

// codePath codes a path as the prefix of ANNOUNCE_REQUEST on lite-06, whose body is nothing else.
func codePath(t *testing.T, body []byte, path string) (got any, encoded []byte) {
	t.Helper()
	var m message.AnnounceRequest
	if err := m.Decode(body, message.Lite06); err != nil {
		t.Fatal(err)
	}
	b, err := message.AnnounceRequest{Prefix: path}.Append(nil, message.Lite06)
	if err != nil {
		t.Fatal(err)
	}
	return m.Prefix, b[1:]
}

// codeHops codes a chain as that of an announcement on lite-04.
func codeHops(t *testing.T, body []byte, hops []uint64) (got any, encoded []byte) {
	t.Helper()
	head := []byte{1, 0} // active, empty suffix
	m, err := message.DecodeAnnounce(0, append(head, body...), message.Lite04)
	if err != nil {
		t.Fatal(err)
	}
	b, err := message.Announce{Hops: hops}.Append(nil, message.Lite04)
	if err != nil {
		t.Fatal(err)
	}
	return m.Hops, b[1+len(head):]
}
