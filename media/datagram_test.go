package media_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
)

func datagrams(r *media.Reader) (groups []uint64) {
	for {
		d, ok := r.NextDatagram()
		if !ok {
			return groups
		}
		groups = append(groups, d.Group)
	}
}

func TestDatagrams(t *testing.T) {
	r := newRig(t)
	a, b := r.track.NewCopy(nil), r.track.NewCopy(nil)
	v := r.view(any2)
	want := func(reader *media.Reader, groups ...uint64) {
		t.Helper()
		if diff := cmp.Diff(groups, datagrams(reader)); diff != "" {
			t.Errorf("datagrams (-want +got):\n%s", diff)
		}
	}
	p := []byte("tick")
	a.Datagram(7, 7000, p)
	p[0] = 'x'
	if !v.woken() {
		t.Error("not woken")
	}
	if d, ok := v.reader.NextDatagram(); !ok || d.Group != 7 || d.Timestamp != 7000 || string(d.Payload) != "tick" {
		t.Errorf("datagram %+v, %v", d, ok)
	}
	v.start(7)
	b.Datagram(7, 7000, p) // F17: from the other copy
	b.Datagram(8, 8000, p)
	a.Datagram(8, 8000, p)
	want(v.reader, 8)
	want(v.reader)
	if diff := cmp.Diff(at(9, 0), r.track.Lacking(any2)); diff != "" {
		t.Errorf("a datagram counts as a complete group (-want +got):\n%s", diff)
	}
	late := r.view(any2)
	want(late.reader) // never for those who come later
	bounded := from(2, at(10, 0))
	bounded.End = at(12, 0)
	ranged := r.view(bounded)
	for _, seq := range []uint64{9, 10, 11, 12} {
		a.Datagram(seq, seq, p)
	}
	want(ranged.reader, 10, 11)
	want(v.reader, 9, 10, 11, 12)

	a.Datagram(1<<62, 0, p)
	a.Datagram(13, 1<<62, p)
	a.Datagram(13, 13, make([]byte, 65536))
	r.whole(a, 14, 1)
	b.Datagram(14, 14, p) // it came as a stream
	r.track.End(15)
	a.Datagram(15, 15, p)
	want(v.reader)
	r.whole(b, 12, 1) // and what came as a datagram is not handed out as a group
	v.read().got(14)
}

// TestDatagramRing: a reader that is too slow loses the oldest, and learns how many and how much.
func TestDatagramRing(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	v := r.view(from(2, at(0, 0)))
	seq := uint64(0)
	push := func(n int) {
		for range n {
			c.Datagram(seq, seq, make([]byte, 10+seq%3))
			seq++
		}
	}
	size := func(from, to uint64) (n uint64) {
		for s := from; s < to; s++ {
			n += 10 + s%3
		}
		return n
	}
	take := func(first, last, missed uint64) {
		t.Helper()
		for want := first; want <= last; want++ {
			d, ok := v.reader.NextDatagram()
			bytes := size(want-missed, want)
			if !ok || d.Group != want || d.Missed != missed || d.MissedBytes != bytes {
				t.Fatalf("group %d (%v), %d of %d bytes missed, want group %d, %d of %d", d.Group, ok, d.Missed, d.MissedBytes, want, missed, bytes)
			}
			missed = 0
		}
	}
	push(5)
	take(0, 4, 0)
	push(100)
	const ring = media.DatagramRing
	take(105-ring, 104, 100-ring)
	push(3)
	take(105, 105, 0)
	push(ring)
	take(108, 107+ring, 2)
	if d, ok := v.reader.NextDatagram(); ok {
		t.Errorf("one more: %+v", d)
	}
}
