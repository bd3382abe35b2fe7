package media

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLedgerGaps(t *testing.T) {
	for _, tt := range []struct {
		name     string
		complete []uint64
		begun    []uint64
		want     []span
	}{
		{"nothing", nil, nil, nil},
		{"complete", []uint64{5, 6, 7}, nil, nil},
		{"open at the end", []uint64{5, 6}, []uint64{7}, []span{{7, 7}}},
		{"open at the start", []uint64{6, 7}, []uint64{5}, []span{{5, 5}}},
		{"hole", []uint64{5, 9}, nil, []span{{6, 8}}},
		{"two", []uint64{5, 9, 10}, []uint64{3, 12}, []span{{3, 4}, {6, 8}, {11, 12}}},
		{"only open", nil, []uint64{4, 6}, []span{{4, 6}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l ledger
			for _, x := range tt.begun {
				l.begin(x)
			}
			for _, x := range tt.complete {
				l.finish(x)
			}
			var got []span
			l.gaps(func(s span) bool {
				got = append(got, s)
				return true
			})
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			n := 0
			l.gaps(func(span) bool { n++; return false })
			if n > 1 {
				t.Error("gaps went on after false")
			}
		})
	}
}

func TestClaims(t *testing.T) {
	var c claims
	c.ask(8)
	if got := c.admit(7); !errors.Is(got, ErrBelowStart) {
		t.Errorf("below the floor: %v", got)
	}
	if !c.declare(10) || c.declare(4) {
		t.Error("only the first START counts")
	}
	if c.may(9) || !c.may(10) {
		t.Error("nothing comes below the declared start")
	}
	c.begin(11)
	if got := c.admit(11); !errors.Is(got, ErrDuplicate) {
		t.Errorf("begun: %v", got)
	}
	c.dropped.add(12, 13)
	if c.may(13) || c.admit(13) != nil {
		t.Error("a dropped group is not awaited, but taken if it comes")
	}
	c.end, c.ended = 20, true
	c.limit, c.limited = 15, true
	for _, tt := range []struct {
		seq     uint64
		stopped bool
	}{{20, false}, {14, false}, {15, true}} {
		c.refuse(tt.seq, c.admit(tt.seq))
		if c.stopped != tt.stopped {
			t.Errorf("stopped = %v after %d", c.stopped, tt.seq)
		}
	}
	c.ask(9) // raised: the declaration holds
	if c.lowest() != 10 {
		t.Errorf("lowest = %d, want 10", c.lowest())
	}
	c.ask(3) // lowered: it is void
	if c.lowest() != 3 || !c.may(4) || !c.declare(4) {
		t.Error("a lowered start must void the declared one")
	}
}
