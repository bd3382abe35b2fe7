package testmedia_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/internal/testmedia"
)

func TestRoundTrip(t *testing.T) {
	h := testmedia.Header{Sent: time.UnixMilli(1_700_000_000_123), Group: 1<<40 + 7, Index: 3, Of: 60}
	for _, tc := range []struct {
		format     testmedia.Format
		size, want int
		group      uint64
	}{
		{testmedia.Mesh, 0, testmedia.MeshHeader, h.Group},
		{testmedia.Mesh, 4096, 4096, h.Group},
		{testmedia.JS, 0, testmedia.JSHeader, 7},
		{testmedia.JS, 1200, 1200, 7},
	} {
		p := tc.format.Append([]byte("before"), h, tc.size)[len("before"):]
		if len(p) != tc.want {
			t.Errorf("%v of size %d has %d bytes", tc.format, tc.size, len(p))
		}
		got, err := tc.format.Parse(p)
		want := h
		want.Group = tc.group
		if err != nil || !cmp.Equal(got, want, cmp.Comparer(time.Time.Equal)) {
			t.Errorf("%v: %+v, %v", tc.format, got, err)
		}
	}
}

// TestDamage flips each bit of a frame: no flip may pass.
func TestDamage(t *testing.T) {
	p := testmedia.Mesh.Append(nil, testmedia.Header{Sent: time.Now(), Group: 5, Of: 2}, 100)
	for bit := range len(p) * 8 {
		p[bit/8] ^= 1 << (bit % 8)
		if _, err := testmedia.Mesh.Parse(p); err == nil {
			t.Fatalf("bit %d may flip", bit)
		}
		p[bit/8] ^= 1 << (bit % 8)
	}
	for _, f := range []testmedia.Format{testmedia.Mesh, testmedia.JS} {
		for n := range testmedia.JSHeader {
			if _, err := f.Parse(p[:n]); err == nil {
				t.Errorf("%v: %d bytes parse", f, n)
			}
		}
	}
}

func frame(group uint64, index, of uint32) []byte {
	return testmedia.Mesh.Append(nil, testmedia.Header{Sent: time.UnixMilli(1), Group: group, Index: index, Of: of}, 40)
}

// play feeds whole groups of three frames.
func play(c *testmedia.Checker, groups ...uint64) {
	for _, g := range groups {
		c.Begin(g, 0)
		for i := range uint32(3) {
			c.Frame(g, frame(g, i, 3))
		}
		c.End(g, true)
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		play  func(*testmedia.Checker)
		ended bool
		want  testmedia.Report
		ok    bool
	}{
		{name: "nothing", play: func(*testmedia.Checker) {}},
		{
			name: "all", play: func(c *testmedia.Checker) { play(c, 1, 3, 2, 4) }, ended: true,
			want: testmedia.Report{Frames: 12, Bytes: 480, Groups: 4, First: 1, Last: 4}, ok: true,
		},
		{
			name: "hole", play: func(c *testmedia.Checker) { play(c, 1, 2, 5, 6, 7) }, ended: true,
			want: testmedia.Report{Frames: 15, Bytes: 600, Groups: 5, First: 1, Last: 7, Missing: 2, Gaps: [][2]uint64{{3, 4}}},
		},
		{
			name: "hole among the newest of a live track", play: func(c *testmedia.Checker) { play(c, 1, 2, 4) },
			want: testmedia.Report{Frames: 9, Bytes: 360, Groups: 3, First: 1, Last: 4}, ok: true,
		},
		{
			name: "the same hole once the track has ended", play: func(c *testmedia.Checker) { play(c, 1, 2, 4) }, ended: true,
			want: testmedia.Report{Frames: 9, Bytes: 360, Groups: 3, First: 1, Last: 4, Missing: 1, Gaps: [][2]uint64{{3, 3}}},
		},
		{
			name: "group again", play: func(c *testmedia.Checker) { play(c, 1, 2); c.Begin(1, 0) }, ended: true,
			want: testmedia.Report{Frames: 6, Bytes: 240, Groups: 2, First: 1, Last: 2, Twice: 1},
		},
		{
			name: "reset in mid-group", ended: true,
			play: func(c *testmedia.Checker) { c.Begin(0, 0); c.Frame(0, frame(0, 0, 3)); c.End(0, false); play(c, 1) },
			want: testmedia.Report{Frames: 4, Bytes: 160, Groups: 1, First: 0, Last: 1, Cut: 1, Gaps: [][2]uint64{{0, 0}}},
		},
		{
			name: "short group that others follow", ended: true,
			play: func(c *testmedia.Checker) { c.Begin(0, 0); c.Frame(0, frame(0, 0, 3)); c.End(0, true); play(c, 1) },
			want: testmedia.Report{Frames: 4, Bytes: 160, Groups: 1, First: 0, Last: 1, Cut: 1, Gaps: [][2]uint64{{0, 0}}},
		},
		{
			name: "short last group: the publisher stopped", ended: true,
			play: func(c *testmedia.Checker) { play(c, 0); c.Begin(1, 0); c.Frame(1, frame(1, 0, 3)); c.End(1, true) },
			want: testmedia.Report{Frames: 4, Bytes: 160, Groups: 1, First: 0, Last: 1}, ok: true,
		},
		{
			name: "stuck group", play: func(c *testmedia.Checker) { c.Begin(0, 0); c.Frame(0, frame(0, 0, 3)); play(c, 1, 2) },
			want: testmedia.Report{Frames: 7, Bytes: 280, Groups: 2, First: 0, Last: 2, Cut: 1, Gaps: [][2]uint64{{0, 0}}},
		},
		{
			name: "frame skipped, frame again, frame of another group", ended: true,
			play: func(c *testmedia.Checker) {
				c.Begin(0, 0)
				for _, p := range [][]byte{frame(0, 1, 3), frame(0, 1, 3), frame(9, 2, 3)} {
					if _, ok := c.Frame(0, p); ok {
						panic("fault not seen")
					}
				}
				c.End(0, true)
			},
			want: testmedia.Report{Wrong: 2, Twice: 1, Groups: 1},
		},
		{
			name: "begins inside a group", ended: true,
			play: func(c *testmedia.Checker) {
				c.Begin(4, 2)
				c.Frame(4, frame(4, 2, 3))
				c.End(4, true)
			},
			want: testmedia.Report{Frames: 1, Bytes: 40, Groups: 1, First: 4, Last: 4}, ok: true,
		},
		{
			name: "datagrams", ended: true,
			play: func(c *testmedia.Checker) {
				for _, g := range []uint64{1, 2, 4, 4} {
					c.Single(g, frame(g, 0, 1))
				}
			},
			want: testmedia.Report{
				Frames: 3, Bytes: 120, Groups: 3, First: 1, Last: 4, Twice: 1, Missing: 1, Gaps: [][2]uint64{{3, 3}},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := testmedia.NewChecker(testmedia.Mesh)
			tc.play(c)
			got := c.Report(tc.ended)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if got.OK() != tc.ok {
				t.Errorf("ok = %v", got.OK())
			}
		})
	}
}

// TestMissing compares the count of missing groups with a list, in any order of arrival.
func TestMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 300), 1, 100, rapid.ID[uint64]).Draw(t, "groups")
		c := testmedia.NewChecker(testmedia.Mesh)
		play(c, groups...)
		slices.Sort(groups)
		want := groups[len(groups)-1] - groups[0] + 1 - uint64(len(groups))
		if got := c.Report(true); got.Missing != want || got.Groups != uint64(len(groups)) || got.Twice != 0 {
			t.Fatalf("%v: %+v, want %d missing", groups, got, want)
		}
		if got := c.Report(false); got.Missing > want {
			t.Fatalf("more missing while live: %+v", got)
		}
	})
}

// TestBounded leaves out every second of very many groups: memory stays bounded and nothing is miscounted.
func TestBounded(t *testing.T) {
	c := testmedia.NewChecker(testmedia.Raw)
	const n = 6000
	for i := range uint64(n) {
		c.Begin(2*i, 0)
		c.Frame(2*i, nil)
		c.End(2*i, true)
	}
	if r := c.Report(true); r.Missing != n-1 || r.Groups != n || r.First != 0 || len(r.Gaps) > 20 {
		t.Errorf("%+v", r)
	}
	for i := range uint64(n) { // none of these ever ends
		c.Begin(2*n+i, 0)
	}
	if r := c.Report(true); r.Cut != n {
		t.Errorf("%d of %d cut", r.Cut, n)
	}
}

// TestShuffledLive keeps two groups under way in random order, as a live track does.
func TestShuffledLive(t *testing.T) {
	c := testmedia.NewChecker(testmedia.Mesh)
	rnd := rand.New(rand.NewPCG(1, 2))
	for g := uint64(0); g < 1000; g += 2 {
		pair := []uint64{g, g + 1}
		rnd.Shuffle(2, func(i, j int) { pair[i], pair[j] = pair[j], pair[i] })
		play(c, pair...)
	}
	if r := c.Report(true); !r.OK() || r.Groups != 1000 {
		t.Errorf("%+v", r)
	}
}

// TestPieces: a frame that comes in pieces is judged as one that comes whole, damaged or not, and so is a stamped one.
func TestPieces(t *testing.T) {
	var p testmedia.Pieces
	rapid.Check(t, func(t *rapid.T) {
		h := testmedia.Header{
			Sent: time.Unix(0, rapid.Int64Min(0).Draw(t, "sent")), Group: rapid.Uint64().Draw(t, "group"),
			Index: rapid.Uint32().Draw(t, "index"), Of: rapid.Uint32().Draw(t, "of"),
		}
		b := testmedia.Mesh.Append(nil, testmedia.Header{}, rapid.IntRange(0, 200).Draw(t, "size"))
		testmedia.Stamp(b, h)
		if got, err := testmedia.Mesh.Parse(b); err != nil || !cmp.Equal(got, h, cmp.Comparer(time.Time.Equal)) {
			t.Fatalf("stamped %+v, got %+v, %v", h, got, err)
		}
		if at := rapid.IntRange(-1, len(b)-1).Draw(t, "damage"); at >= 0 {
			b[at]++
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		want, wantErr := testmedia.Mesh.Parse(b)
		p.Reset()
		for rest := b; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			p.Add(rest[:n])
			rest = rest[n:]
		}
		if got, err := p.Header(); !errors.Is(err, wantErr) || !cmp.Equal(got, want, cmp.Comparer(time.Time.Equal)) {
			t.Fatalf("got %+v, %v, want %+v, %v", got, err, want, wantErr)
		}
	})
}

// TestStop lets what is under way end, and counts nothing that begins later.
func TestStop(t *testing.T) {
	c := testmedia.NewChecker(testmedia.Mesh)
	play(c, 1, 2, 3, 4)
	for g := uint64(5); g < 10; g++ {
		c.Begin(g, 0)
	}
	c.Stop()
	for g := uint64(10); g < 20; g++ {
		c.Begin(g, 0)
	}
	if r := c.Report(false); r.Last != 9 || r.Cut != 3 || r.Missing != 0 {
		t.Errorf("while groups 5 to 9 are under way: %+v", r)
	}
	play(c, 20)
	c.Stop() // changes nothing
	for g := uint64(5); g < 9; g++ {
		for i := range uint32(3) {
			c.Frame(g, frame(g, i, 3))
		}
		c.End(g, true)
	}
	if r := c.Report(false); !r.OK() || r.Last != 9 || r.Groups != 8 || r.Frames != 24 {
		t.Errorf("when they have ended: %+v", r)
	}
}
