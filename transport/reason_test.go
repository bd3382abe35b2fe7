package transport_test

import (
	"testing"

	"github.com/moqmesh/moqmesh/transport"
)

func TestTruncateReason(t *testing.T) {
	for _, test := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aéé", 4, "aé"},
		{"aéé", 5, "aéé"},
		{"日本", 2, ""},
		{"\x80\x80\x80", 2, ""},
	} {
		if got := transport.TruncateReason(test.in, test.n); got != test.want {
			t.Errorf("%q to %d bytes: %q", test.in, test.n, got)
		}
	}
}
