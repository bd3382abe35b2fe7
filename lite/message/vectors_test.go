package message_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/wire"
)

// The vectors come from the encoders of the reference implementation. They are the proof that we speak its dialect.
type vectorFile struct {
	Primitives []primitive
	Vectors    []vector
	Streams    []streamVector
	Invalid    []invalidVector
}

type primitive struct {
	Kind       string
	Value      any
	Normalized string
	Hex        hexBytes
	DecodeOnly bool `json:"decode_only"`
}

type vector struct {
	ID         string
	Version    version
	Message    string
	Fields     fields
	Hex        hexBytes
	DecodeOnly bool `json:"decode_only"`
}

type streamVector struct {
	Version  version
	Stream   string
	Hex      hexBytes
	Messages []string
}

type invalidVector struct {
	Version   version
	Message   string
	Hex       hexBytes
	Why       string
	Truncated bool
}

type version message.Version

func (v *version) UnmarshalText(b []byte) error {
	n, err := strconv.Atoi(strings.TrimPrefix(string(b), "lite-"))
	*v = version(n)
	return err
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(b []byte) error {
	p, err := hex.DecodeString(string(b))
	*h = p
	return err
}

// fields are the decoded content of a vector.
type fields map[string]any

func (f fields) num(key string) uint64    { return toUint(f[key]) }
func (f fields) u8(key string) uint8      { return uint8(f.num(key)) }
func (f fields) text(key string) string   { s, _ := f[key].(string); return s }
func (f fields) has(key string) bool      { _, ok := f[key]; return ok }
func (f fields) hops(key string) []uint64 { return toUints(f[key]) }

func (f fields) ms(key string) time.Duration { return time.Duration(f.num(key)) * time.Millisecond }

func (f fields) option(key string) message.Option {
	if f[key] == nil {
		return message.Option{}
	}
	return message.Some(f.num(key))
}

func (f fields) bytes(key string) []byte {
	b, err := hex.DecodeString(f.text(key))
	if err != nil {
		panic(err)
	}
	return b
}

func (f fields) list(key string) (l []fields) {
	for _, e := range f[key].([]any) {
		l = append(l, e.(map[string]any))
	}
	return l
}

// toUint takes what the vectors use for a number: a JSON number, a string for large ones, or null.
func toUint(v any) uint64 {
	if v == nil {
		return 0
	}
	n, err := strconv.ParseUint(fmt.Sprint(v), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func toUints(v any) (l []uint64) {
	for _, e := range v.([]any) {
		l = append(l, toUint(e))
	}
	return l
}

func loadVectors(tb testing.TB) vectorFile {
	tb.Helper()
	b, err := os.ReadFile("testdata/moq-lite.json")
	if err != nil {
		tb.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var file vectorFile
	if err := dec.Decode(&file); err != nil {
		tb.Fatal(err)
	}
	if len(file.Primitives) == 0 || len(file.Vectors) == 0 || len(file.Streams) == 0 || len(file.Invalid) == 0 {
		tb.Fatal("the vector file lacks a part")
	}
	return file
}

// buildMessage makes the message that a vector describes.
func buildMessage(name string, f fields) any {
	switch name {
	case "SETUP":
		return message.Setup{
			Probe: f.num("probe"), Path: f.text("path"), HasPath: f.has("path"), Role: message.Role(f.num("role")),
			Cost: f.num("cost"), HasCost: f.has("cost"), Hop: f.num("hop"),
		}
	case "CLIENT_SETUP":
		return message.ClientSetup{Versions: toUints(f["versions"]), Params: buildParams(f)}
	case "SERVER_SETUP":
		return message.ServerSetup{Version: f.num("version"), Params: buildParams(f)}
	case "SESSION_INFO":
		return message.SessionInfo{Bitrate: f.num("bitrate")}
	case "TRACK":
		return message.Track{Broadcast: f.text("broadcast"), Track: f.text("track")}
	case "TRACK_INFO":
		return message.TrackInfo{Priority: f.u8("priority"), MaxAge: f.ms("max_age_ms"), Timescale: f.num("timescale")}
	case "FETCH":
		return message.Fetch{
			Broadcast: f.text("broadcast"), Track: f.text("track"), Priority: f.u8("priority"), Group: f.num("group"),
			StartFrame: f.num("start_frame"), EndFrame: f.option("end_frame"),
		}
	case "GROUP":
		return message.Group{Subscribe: f.num("subscribe_id"), Sequence: f.num("sequence"), StartFrame: f.num("frame_start")}
	case "DATAGRAM":
		return message.Datagram{
			Subscribe: f.num("subscribe_id"), Sequence: f.num("sequence"), Timestamp: f.num("timestamp"),
			Payload: f.bytes("payload_hex"),
		}
	case "PROBE":
		return message.Probe{Bitrate: f.num("bitrate"), RTT: f.ms("rtt_ms")}
	case "GOAWAY":
		return message.Goaway{URI: f.text("uri")}
	case "FRAMES":
		return buildFrames(f)
	}
	if strings.HasPrefix(name, "ANNOUNCE") {
		return buildAnnounce(name, f)
	}
	return buildSubscribe(name, f)
}

func buildParams(f fields) (params []message.Param) {
	for _, p := range f.list("parameters") {
		param := message.Param{ID: p.num("id"), Value: p.num("value")}
		if p.has("value_hex") {
			param.Bytes = p.bytes("value_hex")
		}
		params = append(params, param)
	}
	return params
}

func buildAnnounce(name string, f fields) any {
	var m message.Announce
	switch name {
	case "ANNOUNCE_REQUEST":
		return message.AnnounceRequest{Prefix: f.text("prefix"), ExcludeHop: f.num("exclude_hop")}
	case "ANNOUNCE_INIT":
		var init message.AnnounceInit
		for _, s := range f["suffixes"].([]any) {
			init.Suffixes = append(init.Suffixes, s.(string))
		}
		return init
	case "ANNOUNCE_OK":
		return message.AnnounceOK{Hop: f.num("hop"), Active: f.num("active")}
	case "ANNOUNCE_BROADCAST":
		m.Kind = message.AnnounceStart
		if f.num("status") == 0 {
			m.Kind = message.AnnounceEnd
		}
	case "ANNOUNCE_START":
		m.Kind = message.AnnounceStart
	case "ANNOUNCE_END":
		m.Kind = message.AnnounceEnd
	case "ANNOUNCE_RESTART":
		m.Kind = message.AnnounceRestart
	case "ANNOUNCE_UNKNOWN":
		return message.Announce{Kind: message.AnnounceUnknown}
	default:
		panic("no builder for " + name)
	}
	m.ID, m.Suffix, m.HopCount = f.num("announce_id"), f.text("suffix"), f.num("hop_count")
	m.Warm, m.Cold = f.num("cost_warm"), f.num("cost_cold")
	if f.has("hops") {
		m.Hops = f.hops("hops")
	}
	return m
}

func buildSubscribe(name string, f fields) any {
	bounds := message.Bounds{
		Priority: f.u8("priority"), MaxAge: f.ms("max_age_ms"), StartGroup: f.option("start_group"),
		EndGroup: f.option("end_group"), StartFrame: f.num("start_frame"), EndFrame: f.option("end_frame"),
	}
	switch name {
	case "SUBSCRIBE":
		if !f.has("max_age_ms") {
			bounds.MaxAge = wire.MaxDuration
		}
		return message.Subscribe{ID: f.num("subscribe_id"), Broadcast: f.text("broadcast"), Track: f.text("track"), Bounds: bounds}
	case "SUBSCRIBE_UPDATE":
		return message.SubscribeUpdate{Bounds: bounds}
	case "SUBSCRIBE_OK":
		return message.SubscribeOK{
			Priority: bounds.Priority, MaxAge: bounds.MaxAge, StartGroup: bounds.StartGroup, EndGroup: bounds.EndGroup,
		}
	case "SUBSCRIBE_START":
		return message.SubscribeStart{Group: f.num("group")}
	case "SUBSCRIBE_END":
		return message.SubscribeEnd{Group: f.num("group")}
	case "SUBSCRIBE_DROP":
		return message.SubscribeDrop{Start: f.num("start"), End: f.num("end"), Code: f.num("error")}
	default:
		panic("no builder for " + name)
	}
}

// frames are the frames of a group, which are no message of their own.
type frames []frame

type frame struct {
	Timestamp uint64
	Payload   []byte
}

func buildFrames(f fields) (l frames) {
	for _, e := range f.list("frames") {
		l = append(l, frame{e.num("timestamp"), e.bytes("payload_hex")})
	}
	return l
}

func (l frames) Append(b []byte, v message.Version) ([]byte, error) {
	var prev uint64
	for _, f := range l {
		var err error
		h := message.FrameHeader{Delta: int64(f.Timestamp - prev), Size: uint64(len(f.Payload))}
		if b, err = message.AppendFrameHeader(b, v, h); err != nil {
			return b, err
		}
		b = append(b, f.Payload...)
		prev = f.Timestamp
	}
	return b, nil
}

func readFrames(r *bufio.Reader, v message.Version) (l frames, err error) {
	for fr := message.NewFrameReader(r, v); ; {
		ts, payload, err := fr.Next()
		if errors.Is(err, io.EOF) {
			return l, nil
		} else if err != nil {
			return l, err
		}
		l = append(l, frame{ts, bytes.Clone(payload)})
	}
}

// readMessage reads the message called name from r, as it comes after the type of the stream.
func readMessage(r *bufio.Reader, name string, v message.Version) (any, error) {
	switch name {
	case "CLIENT_SETUP":
		return message.ReadClientSetup(r)
	case "SERVER_SETUP":
		return message.ReadServerSetup(r)
	case "ANNOUNCE_BROADCAST", "ANNOUNCE_START", "ANNOUNCE_END", "ANNOUNCE_RESTART", "ANNOUNCE_UNKNOWN":
		return message.ReadAnnounce(r, v)
	case "SUBSCRIBE_OK", "SUBSCRIBE_START", "SUBSCRIBE_END", "SUBSCRIBE_DROP", "SUBSCRIBE response":
		return message.ReadResponse(r, v)
	case "FRAMES":
		return readFrames(r, v)
	case "STREAM_TYPE (bidi)":
		return message.ReadStreamType(r, v)
	case "STREAM_TYPE (uni)":
		return message.ReadUniType(r, v)
	case "DATAGRAM":
		var m message.Datagram
		b, err := io.ReadAll(r)
		if err == nil {
			err = m.Decode(b, v)
		}
		return m, err
	}
	switch name {
	case "SETUP":
		return read(r, v, &message.Setup{})
	case "SESSION_INFO":
		return read(r, v, &message.SessionInfo{})
	case "TRACK":
		return read(r, v, &message.Track{})
	case "TRACK_INFO":
		return read(r, v, &message.TrackInfo{})
	case "FETCH":
		return read(r, v, &message.Fetch{})
	case "GROUP":
		return read(r, v, &message.Group{})
	case "PROBE":
		return read(r, v, &message.Probe{})
	case "GOAWAY":
		return read(r, v, &message.Goaway{})
	case "ANNOUNCE_REQUEST":
		return read(r, v, &message.AnnounceRequest{})
	case "ANNOUNCE_INIT":
		return read(r, v, &message.AnnounceInit{})
	case "ANNOUNCE_OK":
		return read(r, v, &message.AnnounceOK{})
	case "SUBSCRIBE":
		return read(r, v, &message.Subscribe{})
	case "SUBSCRIBE_UPDATE":
		return read(r, v, &message.SubscribeUpdate{})
	default:
		panic("no reader for " + name)
	}
}

// read reads a message and returns it by value.
func read[T any, P interface {
	*T
	message.Decoder
}](r *bufio.Reader, v message.Version, m P) (any, error) {
	err := message.Read(r, v, m)
	return *m, err
}

func TestVectors(t *testing.T) {
	for _, vec := range loadVectors(t).Vectors {
		t.Run(vec.ID, func(t *testing.T) {
			v := message.Version(vec.Version)
			want := buildMessage(vec.Message, vec.Fields)
			if !vec.DecodeOnly {
				got, err := want.(message.Encoder).Append([]byte("before"), v)
				if err != nil {
					t.Fatalf("encode: %v", err)
				}
				if diff := cmp.Diff("before"+string(vec.Hex), string(got)); diff != "" {
					t.Errorf("encoded bytes (-want +got):\n%x\n%x", []byte(vec.Hex), got)
				}
			}
			r := bufio.NewReader(bytes.NewReader(vec.Hex))
			got, err := readMessage(r, vec.Message, v)
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if diff := cmp.Diff(normalized(want), normalized(got)); diff != "" {
				t.Errorf("decoded message (-want +got):\n%s", diff)
			}
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("%x left over", rest)
			}
		})
	}
}

// normalized removes differences that mean nothing: paths are built as the vectors write them.
func normalized(m any) any {
	switch m := m.(type) {
	case message.Announce:
		if len(m.Hops) == 0 {
			m.Hops = nil
		}
		return m
	case message.Datagram:
		m.Payload = append([]byte{}, m.Payload...)
		return m
	default:
		return m
	}
}
