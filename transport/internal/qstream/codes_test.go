package qstream

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/transport"
)

// The examples of moq-lite 7.3 and the ends of the range.
func TestMap(t *testing.T) {
	for code, wire := range map[uint64]uint64{
		0x0: 0x52e4a40fa8db, 0x1: 0x52e4a40fa8dc, 0x12: 0x52e4a40fa8ed,
		0x33: 0x52e4a40fa90f, 0x34: 0x52e4a40fa910, 0x36: 0x52e4a40fa912,
		math.MaxUint32: 0x52e5ac983162,
	} {
		if got := Map(code); got != wire {
			t.Errorf("0x%x is mapped to 0x%x, want 0x%x", code, got, wire)
		}
	}
	if Map(1<<40) != Map(math.MaxUint32) {
		t.Error("a code beyond 32 bits leaves the range")
	}
	for _, wire := range []uint64{0, 0x12, firstMapped - 1, lastMapped + 1, firstMapped + 30, 1<<62 - 1} {
		if code, ok := Unmap(wire); ok {
			t.Errorf("0x%x is unmapped to 0x%x", wire, code)
		}
	}
}

func TestMapInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := uint64(rapid.Uint32().Draw(t, "code"))
		wire := Map(code)
		if got, ok := Unmap(wire); !ok || got != code {
			t.Fatalf("0x%x became 0x%x, %v", code, got, ok)
		}
		if wire%31 == 0x21%31 { // what HTTP/3 reserves
			t.Fatalf("0x%x is mapped to the reserved 0x%x", code, wire)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		wire := rapid.Uint64Range(firstMapped, lastMapped).Draw(t, "wire")
		if code, ok := Unmap(wire); ok && Map(code) != wire {
			t.Fatalf("0x%x became 0x%x", wire, Map(code))
		} else if !ok && wire%31 != 0x21%31 {
			t.Fatalf("0x%x is not reserved, yet refused", wire)
		}
	})
}

func TestStreamError(t *testing.T) {
	for _, test := range []struct {
		codes Codes
		wire  quic.StreamErrorCode
		want  transport.StreamError
	}{
		{Mapped, 0x52e4a40fa8ed, transport.StreamError{Code: 0x12, Remote: true}},
		{Mapped, 0x12, transport.StreamError{Code: 0x12, Remote: true, Unmapped: true}},
		{Plain, 0x12, transport.StreamError{Code: 0x12, Remote: true}},
		{Plain, 0x52e4a40fa8ed, transport.StreamError{Code: 0x12, Remote: true}},
	} {
		got := test.codes.streamError(&quic.StreamError{ErrorCode: test.wire, Remote: true})
		if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%v 0x%x: %s", test.codes, uint64(test.wire), diff)
		}
	}
	if wire := Plain.wire(math.MaxUint64); wire != maxVarint {
		t.Errorf("plain code exceeds QUIC's range: 0x%x", uint64(wire))
	}
}
