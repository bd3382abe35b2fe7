package qmux

import (
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/wire"
)

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

var goldenParams = params{
	idleTimeout: 30_000, data: 1 << 20, bidiLocal: 1 << 18, bidiRemote: 1 << 18, uni: 1 << 18,
	streamsBidi: 10_000, streamsUni: 10_000, datagram: 16382, maxRecord: 16382,
}

const goldenBody = "010480007530 040480100000 050480040000 060480040000 070480040000 " +
	"08026710 09026710 20027ffe c571c59429cd0845027ffe"

// The frames as other implementations encode them.
func TestGoldenFrames(t *testing.T) {
	second := goldenParams
	second.resetAt = true
	inBand := goldenParams
	inBand.protocols = []string{"moq-lite-06", "moq-lite-05"}
	stream := func(d Draft, id, offset uint64, data string, fin bool) []byte {
		return append(d.appendStream(nil, id, offset, len(data), fin), data...)
	}
	for name, test := range map[string]struct {
		draft Draft
		got   []byte
		want  string
		frame frame
	}{
		"parameters": {
			Draft01, goldenParams.append(nil), "ff5153300d0a0d0a35" + goldenBody,
			frame{typ: frameParams, data: unhex(t, goldenBody)},
		},
		"parameters of 02": {
			Draft02, second.append(nil), "ff5153300d0a0d0a37" + goldenBody + "1d00",
			frame{typ: frameParams, data: unhex(t, goldenBody+"1d00")},
		},
		"parameters in band": {
			Draft01, inBand.append(nil),
			"ff5153300d0a0d0a4056" + goldenBody + "fd4f9c2a8b1e607518 0b6d6f712d6c6974652d3036 0b6d6f712d6c6974652d3035",
			frame{typ: frameParams, data: unhex(t, goldenBody+"fd4f9c2a8b1e607518 0b6d6f712d6c6974652d3036 0b6d6f712d6c6974652d3035")},
		},
		"stream":           {Draft01, stream(Draft01, 0, 0, "hello", false), "0e00000568656c6c6f", frame{typ: frameStream, data: []byte("hello")}},
		"end of a stream":  {Draft00, stream(Draft00, 0, 5, "", true), "0f000500", frame{typ: frameStream, fin: true, data: []byte{}}},
		"stream at offset": {Draft02, stream(Draft02, 3, 16384, "ab", true), "0f0380004000026162", frame{typ: frameStream, id: 3, fin: true, data: []byte("ab")}},
		"reset":            {Draft01, Draft01.appendReset(nil, 3, 7, 1000), "04030743e8", frame{typ: frameReset, id: 3, code: 7, value: 1000}},
		"stop":             {Draft01, appendStop(nil, 3, 7), "050307", frame{typ: frameStop, id: 3, code: 7}},
		"max data":         {Draft01, appendLimit(nil, frameMaxData, 2097152), "1080200000", frame{typ: frameMaxData, value: 2097152}},
		"max stream data":  {Draft01, appendMaxStreamData(nil, 3, 524288), "110380080000", frame{typ: frameMaxStreamData, id: 3, value: 524288}},
		"max streams":      {Draft01, appendLimit(nil, frameMaxStreamsBidi, 101), "124065", frame{typ: frameMaxStreamsBidi, value: 101}},
		"max streams uni":  {Draft01, appendLimit(nil, frameMaxStreamsUni, 101), "134065", frame{typ: frameMaxStreamsUni, value: 101}},
		"connection close": {
			Draft01, Draft01.closeFrame(frameConnectionClose, 1002, "Protocol violation"),
			"1c43ea001250726f746f636f6c2076696f6c6174696f6e",
			frame{typ: frameConnectionClose, code: 1002, data: []byte("Protocol violation")},
		},
		"application close": {
			Draft01, Draft01.closeFrame(frameApplicationClose, 42, "bye"), "1d2a03627965",
			frame{typ: frameApplicationClose, code: 42, data: []byte("bye")},
		},
		"ping":           {Draft01, appendLimit(nil, framePing, 1), "f48c67529ef8c7bd01", frame{typ: framePing, value: 1}},
		"pong":           {Draft01, appendLimit(nil, framePong, 1), "f48c67529ef8c7be01", frame{typ: framePong, value: 1}},
		"datagram":       {Draft01, appendDatagram(nil, []byte("dg")), "31026467", frame{typ: frameDatagram, data: []byte("dg")}},
		"legacy stream":  {Legacy, stream(Legacy, 0, 0, "hello", false), "080068656c6c6f", frame{typ: frameStream, data: []byte("hello")}},
		"legacy end":     {Legacy, stream(Legacy, 0, 5, "", true), "0900", frame{typ: frameStream, fin: true, data: []byte{}}},
		"legacy reset":   {Legacy, Legacy.appendReset(nil, 3, 7, 9), "040307", frame{typ: frameReset, id: 3, code: 7}},
		"legacy stop":    {Legacy, appendStop(nil, 3, 7), "050307", frame{typ: frameStop, id: 3, code: 7}},
		"legacy closing": {Legacy, Legacy.closeFrame(frameApplicationClose, 42, "bye"), "1d2a627965", frame{typ: frameApplicationClose, code: 42, data: []byte("bye")}},
	} {
		t.Run(name, func(t *testing.T) {
			want := unhex(t, test.want)
			if diff := cmp.Diff(want, test.got); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
			f, n, err := parser{draft: test.draft, delimited: true}.parse(want)
			if err != nil || n != len(want) {
				t.Fatalf("%d of %d bytes, %v", n, len(want), err)
			}
			if diff := cmp.Diff(test.frame, f, cmp.AllowUnexported(frame{})); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
	got, err := parseParams(unhex(t, goldenBody+"1d00"))
	if diff := cmp.Diff(second, got, cmp.AllowUnexported(params{})); diff != "" || err != nil {
		t.Errorf("parameters: %v\n%s", err, diff)
	}
}

// What only receivers must know.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		name    string
		draft   Draft
		rest    bool // the input has an end
		in      string
		want    frame
		failure error
	}{
		{"no length", Draft01, true, "0800 6162", frame{typ: frameStream, data: []byte("ab")}, nil},
		{"no length, end", Draft00, true, "0900", frame{typ: frameStream, fin: true, data: []byte{}}, nil},
		{"no length in a stream", Draft00, false, "0800 6162", frame{}, errLength},
		{"datagram to the end", Draft02, true, "30 6162", frame{typ: frameDatagram, data: []byte("ab")}, nil},
		{"datagram of 00", Draft00, true, "30 6162", frame{}, errFrameType},
		{"ping of 00", Draft00, true, "f48c67529ef8c7bd01", frame{}, errFrameType},
		{"reliable reset", Draft02, true, "2403 07 43e8 05", frame{typ: frameReset, id: 3, code: 7, value: 1000}, nil},
		{"reliable reset of 01", Draft01, true, "2403 07 43e8 05", frame{}, errFrameType},
		{"reliable beyond final", Draft02, true, "2403 07 05 06", frame{}, errReliable},
		{"padding", Draft01, true, "00", frame{}, nil},
		{"streams out of range", Draft01, true, "12 d000000000000001", frame{}, errStreams},
		{"streams blocked out of range", Draft01, true, "17 d000000000000001", frame{}, errStreams},
		{"unknown", Draft01, true, "1b", frame{}, errFrameType},
		{"unknown of legacy", Legacy, true, "0e", frame{}, errFrameType},
		{"cut", Draft01, true, "0e0000 05 6865", frame{}, wire.ErrTruncated},
		{"empty", Draft01, true, "", frame{}, wire.ErrTruncated},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _, err := parser{draft: test.draft, delimited: test.rest}.parse(unhex(t, test.in))
			if !errors.Is(err, test.failure) || (err != nil) != (test.failure != nil) {
				t.Fatalf("error %v, want %v", err, test.failure)
			}
			if diff := cmp.Diff(test.want, f, cmp.AllowUnexported(frame{})); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParams(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		want error
	}{
		"nothing":           {"", nil},
		"unknown twice":     {"4100 01aa 4100 01bb", nil},
		"twice":             {"0401 05 0401 05", errParamTwice},
		"reset twice":       {"1d00 1d00", errParamTwice},
		"of QUIC":           {"0000", errParamForbidden},
		"also of QUIC":      {"1004 00000000", errParamForbidden},
		"small records":     {"c571c59429cd0845027ffd", errRecordSize},
		"long value":        {"0402 0505", wire.ErrTrailing},
		"cut":               {"0404 80", wire.ErrTruncated},
		"protocol cut":      {"fd4f9c2a8b1e607502 0541", errProtocolList},
		"protocol too long": {"fd4f9c2a8b1e6075 4102 4100" + strings.Repeat("41", 256), errProtocolList},
		"too many":          {strings.Repeat("410000", maxParams+1), errParamTooMany},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseParams(unhex(t, test.in)); !errors.Is(err, test.want) || (err != nil) != (test.want != nil) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	got := Tokens([]string{"moq-lite-06", "moql"}, true)
	want := []string{
		"qmux-02.moq-lite-06", "qmux-01.moq-lite-06", "qmux-00.moq-lite-06", "qmux-02.moql", "qmux-01.moql", "qmux-00.moql",
		"qmux-02", "qmux-01", "qmux-00", "webtransport",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for token, want := range map[string]struct {
		draft    Draft
		protocol string
	}{
		"qmux-01.moq-lite-05": {Draft01, "moq-lite-05"}, "qmux-02": {Draft02, ""}, "qmux-00.": {Draft00, ""},
		"webtransport": {Legacy, ""}, "webtransport.moql": {Legacy, ""}, "": {Legacy, ""}, "qmux-03.moql": {Legacy, ""},
	} {
		if d, p := ParseToken(token); d != want.draft || p != want.protocol {
			t.Errorf("%q: %v, %q", token, d, p)
		}
	}
}

// FuzzParse checks that the decoder survives anything, stays within its input, and that what it takes off a stream of
// bytes does not depend on what follows.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0e00000568656c6c6f", "ff5153300d0a0d0a35" + goldenBody, "04030743e8", "31026467", "2403 07 43e8 05", "1c43ea001250", "080068656c6c6f"} {
		for d := range uint8(4) {
			f.Add(d, unhex(f, seed))
		}
	}
	f.Fuzz(func(t *testing.T, d uint8, b []byte) {
		p := parser{draft: Draft(d % 4), delimited: true}
		got, n, err := p.parse(b)
		if err != nil {
			return
		}
		if n < 1 || n > len(b) || len(got.data) > len(b) {
			t.Fatalf("%d of %d bytes with %d of data", n, len(b), len(got.data))
		}
		if got.typ == frameParams {
			_, _ = parseParams(got.data)
		}
		if p.draft == Legacy || got.value > math.MaxInt64 {
			return
		}
		p.delimited = false
		again, m, err := p.parse(b[:n])
		if err != nil {
			return // it has no length
		}
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(frame{})); diff != "" || m != n {
			t.Fatalf("%d bytes, then %d: %s", n, m, diff)
		}
	})
}
