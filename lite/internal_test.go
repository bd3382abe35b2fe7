package lite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

// pieces hands out its bytes in pieces of given sizes, over and over.
type pieces struct {
	b     []byte
	sizes []int
	n     int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	size := min(p.sizes[p.n%len(p.sizes)], len(b), len(p.b))
	p.n++
	copy(b, p.b[:size])
	p.b = p.b[size:]
	return size, nil
}

// TestInputFrames reads frames of any size from streams cut anywhere, and gives all memory back.
func TestInputFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]message.Version{message.Lite03, message.Lite06}).Draw(t, "version")
		sizes := rapid.SliceOf(rapid.OneOf(
			rapid.IntRange(0, 100), rapid.IntRange(groupBuffer-2, groupBuffer+2), rapid.IntRange(0, 300_000),
		)).Draw(t, "frames")
		stream := &pieces{sizes: rapid.SliceOfN(rapid.IntRange(1, 20_000), 1, 10).Draw(t, "pieces")}
		var want [][]byte
		for i, size := range sizes {
			p := bytes.Repeat([]byte{byte(i + 1)}, size)
			want = append(want, p)
			b, err := message.AppendFrameHeader(stream.b, v, message.FrameHeader{Size: uint64(size)})
			if err != nil {
				t.Fatal(err)
			}
			stream.b = append(b, p...)
		}
		budget := &frameBudget{limit: 16 << 20}
		others := rapid.SampledFrom([]int64{0, maxUpfront}).Draw(t, "taken by others") // with all of it buffers must grow
		budget.used.Store(others)
		in := newGroupInput(stream, budget)
		for i := range want {
			h, err := in.frameHeader(v)
			if err != nil {
				t.Fatal(err)
			}
			p, err := in.payload(int(h.Size))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p, want[i]) {
				t.Fatalf("frame %d of %d bytes is wrong", i, len(want[i]))
			}
		}
		if _, err := in.frameHeader(v); !errors.Is(err, io.EOF) {
			t.Fatalf("end of the stream: %v", err)
		}
		in.free()
		if n := budget.used.Load(); n != others {
			t.Fatalf("%d bytes are taken, %d of them by others", n, others)
		}
	})
}

// endless never ends.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	e.read += len(b)
	return len(b), nil
}

// TestInputBudget wants declared sizes to take memory up to the upfront limit only, and incomplete frames up to the limit
// of the session.
func TestInputBudget(t *testing.T) {
	budget := &frameBudget{limit: 64 << 20}
	var inputs []*input
	for range 4 { // nothing but sizes arrives
		in := newGroupInput(iotestErr{}, budget)
		inputs = append(inputs, in)
		if _, err := in.payload(maxUpfront / 2); !errors.Is(err, errStream) {
			t.Fatal(err)
		}
	}
	if n := budget.used.Load(); n > maxUpfront+2*2*groupBuffer {
		t.Errorf("%d bytes are taken for frames of which nothing has arrived", n)
	}
	for _, in := range inputs {
		in.free()
	}

	inputs = nil
	var err error
	for range 20 { // all of it arrives
		in := newGroupInput(new(endless), budget)
		inputs = append(inputs, in)
		if _, err = in.payload(8 << 20); err != nil {
			break
		}
	}
	if !errors.Is(err, errFrameBudget) || len(inputs) != 9 {
		t.Errorf("%d frames of 8 MiB, %v; want the ninth to be refused", len(inputs), err)
	}
	for _, in := range inputs {
		in.free()
	}
	if n := budget.used.Load(); n != 0 {
		t.Errorf("%d bytes are still taken", n)
	}
}

var errStream = errors.New("stream failed")

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errStream }

func TestInputTruncated(t *testing.T) {
	frame, err := message.AppendFrameHeader(nil, message.Lite06, message.FrameHeader{Delta: 1000, Size: 6000})
	if err != nil {
		t.Fatal(err)
	}
	header := len(frame)
	frame = append(frame, make([]byte, 6000)...)
	for _, cut := range []int{1, header - 1, header, header + 1, header + groupBuffer + 1, len(frame) - 1} {
		in := newGroupInput(bytes.NewReader(frame[:cut]), &frameBudget{limit: maxUpfront})
		h, err := in.frameHeader(message.Lite06)
		if err == nil {
			_, err = in.payload(int(h.Size))
		}
		if !errors.Is(err, message.ErrFrameTruncated) {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
		in.free()
	}
}

func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s spans
		seen := make(map[uint64]bool)
		position := rapid.Uint64Range(0, 60)
		for range rapid.IntRange(0, 60).Draw(t, "adds") {
			first := position.Draw(t, "first")
			last := first + rapid.Uint64Range(0, 5).Draw(t, "length")
			s.add(first, last)
			for i := first; i <= last; i++ {
				seen[i] = true
			}
		}
		for i, x := range s.list {
			if x.first > x.last || i > 0 && x.first <= s.list[i-1].last+1 {
				t.Fatalf("not in order, or not merged: %v", s.list)
			}
		}
		first := position.Draw(t, "from")
		last := first + rapid.Uint64Range(0, 10).Draw(t, "length")
		want := true
		for i := first; i <= last; i++ {
			want = want && seen[i]
		}
		if got := s.covers(first, last); got != want {
			t.Fatalf("%v covers %d to %d: %v", s.list, first, last, got)
		}
		missing := make(map[uint64]bool)
		for _, gap := range s.gaps(first, last, 100) {
			for i := gap.first; i <= gap.last; i++ {
				missing[i] = true
			}
		}
		for i := range position.Draw(t, "to") + last {
			if missing[i] != (i >= first && i <= last && !seen[i]) {
				t.Fatalf("%v lacks %d of %d to %d: %v", s.list, i, first, last, missing[i])
			}
		}
		if n := len(s.gaps(first, last, 2)); n > 2 {
			t.Fatalf("%d gaps, want 2 at most", n)
		}
	})
}

func TestSpansStaySmall(t *testing.T) {
	var s spans
	for i := range uint64(3 * maxSpans) {
		s.add(10*i, 10*i)
	}
	if len(s.list) != maxSpans {
		t.Errorf("%d ranges are kept", len(s.list))
	}
	top := uint64(10 * (3*maxSpans - 1))
	if !s.covers(0, 10) || s.covers(top-10, top) {
		t.Error("gaps are not filled from the bottom")
	}
	s.add(wire.MaxVarint, wire.MaxVarint)
	s.add(0, wire.MaxVarint)
	if len(s.list) != 1 {
		t.Errorf("the whole range is %v", s.list)
	}
}

// urgent is a stream that knows its urgency and counts how often that was set.
type urgent struct {
	transport.SendStream
	urgency, sets int
}

func (u *urgent) SetPriority(urgency int) { u.urgency, u.sets = urgency, u.sets+1 }

// TestRanks compares with sorting anew after every step, and wants no urgency to be set that has not changed.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranker
		var open []*ranked
		id, sequence := rapid.Uint64Range(0, 3), uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := make(map[*ranked]int)
			for _, e := range open {
				before[e] = e.stream.(*urgent).urgency
				e.stream.(*urgent).sets = 0
			}
			switch op := rapid.IntRange(0, 4).Draw(t, "step"); {
			case op < 3 || len(open) == 0:
				sequence++
				e := &ranked{
					stream: new(urgent), id: id.Draw(t, "id"), sequence: sequence,
				}
				e.priority = uint8(e.id % 2)
				if i := slices.IndexFunc(open, func(o *ranked) bool { return o.id == e.id }); i >= 0 {
					e.priority = open[i].priority
				}
				r.add(e)
				open = append(open, e)
			case op == 3:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				r.remove(open[i])
				open = slices.Delete(open, i, i+1)
			default:
				r.setPriority(id.Draw(t, "id"), rapid.Uint8().Draw(t, "priority"))
			}
			sorted := slices.SortedFunc(slices.Values(open), (*ranked).compare)
			for i, e := range sorted {
				u := e.stream.(*urgent)
				if want := min(firstUrgency+i, lastUrgency); u.urgency != want {
					t.Fatalf("rank %d has urgency %d, want %d", i, u.urgency, want)
				}
				if was, old := before[e]; old && (u.sets > 0) != (was != u.urgency) {
					t.Fatalf("urgency %d set %d times, was %d", u.urgency, u.sets, was)
				}
			}
		}
	})
}

// creditConn opens a stream per token.
type creditConn struct {
	transport.Conn
	credit chan struct{}
}

func (c creditConn) OpenUniStream(ctx context.Context) (transport.SendStream, error) {
	select {
	case <-c.credit:
		return new(urgent), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestStreamCreditGoesByRank wants streams to go to the newest group first, and those who give up to take nothing
// with them.
func TestStreamCreditGoesByRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := creditConn{credit: make(chan struct{})}
		var o opener
		opened := make(chan uint64, 10)
		cancel := make(map[uint64]context.CancelFunc)
		for _, seq := range []uint64{3, 1, 4, 2, 5} { // 3 leads
			ctx, stop := context.WithCancel(t.Context())
			cancel[seq] = stop
			go func() {
				if _, err := o.open(ctx, conn, newOpening(&ranked{sequence: seq})); err != nil {
					seq += 100
				}
				opened <- seq
			}()
			synctest.Wait()
		}
		var got []uint64
		next := func() {
			conn.credit <- struct{}{}
			got = append(got, <-opened)
		}
		next()      // 5
		cancel[4]() // one that waits
		got = append(got, <-opened)
		cancel[3]() // the leader
		got = append(got, <-opened)
		next() // 2, which leads now
		next() // 1
		if diff := cmp.Diff([]uint64{5, 104, 103, 2, 1}, got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if o.led || len(o.waiting) > 0 {
			t.Errorf("left behind: %+v", &o)
		}
		for _, stop := range cancel {
			stop()
		}
	})
}

// TestStreamCreditRaces lets many wait, give up and open at the same time; nobody may be forgotten.
func TestStreamCreditRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := creditConn{credit: make(chan struct{})}
		var o opener
		const n = 200
		done := make(chan bool, n)
		for i := range n {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%7)*time.Millisecond)
				defer cancel()
				_, err := o.open(ctx, conn, newOpening(&ranked{sequence: uint64(i * 31 % n)}))
				done <- err == nil
			}()
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case conn.credit <- struct{}{}:
					time.Sleep(100 * time.Microsecond)
				case <-stop:
					return
				}
			}
		}()
		opened := 0
		for range n {
			if <-done {
				opened++
			}
		}
		close(stop)
		<-stopped
		if opened == 0 || o.led || len(o.waiting) > 0 {
			t.Errorf("%d opened; left behind: %+v", opened, &o)
		}
	})
}

// TestProbeCadence follows moq-lite 5.14. Times are since the first look.
func TestProbeCadence(t *testing.T) {
	const ms = time.Millisecond
	type look struct {
		at   time.Duration
		rtt  time.Duration
		want bool
	}
	for _, tt := range []struct {
		name  string
		looks []look
	}{
		{"nothing known, nothing said", []look{{0, 0, false}, {20 * time.Second, 0, false}}},
		{"first at once", []look{{0, 40 * ms, true}, {100 * ms, 40 * ms, false}}},
		{"a quarter at once", []look{{0, 40 * ms, true}, {10 * ms, 49 * ms, false}, {20 * ms, 50 * ms, true}, {30 * ms, 38 * ms, false}, {40 * ms, 37 * ms, true}}},
		{"every ten seconds", []look{{0, 40 * ms, true}, {9900 * ms, 40 * ms, false}, {10 * time.Second, 40 * ms, true}, {19 * time.Second, 41 * ms, false}, {20 * time.Second, 41 * ms, true}}},
		{"zeros once", []look{{0, 40 * ms, true}, {100 * ms, 0, true}, {30 * time.Second, 0, false}, {31 * time.Second, 40 * ms, true}}},
		{"never a measured zero", []look{{0, 300 * time.Microsecond, true}, {100 * ms, 900 * time.Microsecond, false}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p prober
			start := time.Unix(1000, 0)
			for i, l := range tt.looks {
				m, got := p.sample(start.Add(l.at), transport.Stats{RTT: l.rtt})
				if got != l.want || got && m.RTT != max(l.rtt.Truncate(ms), min(l.rtt, 1)*ms) {
					t.Errorf("look %d: %+v, %v; want %v", i, m, got, l.want)
				}
			}
		})
	}
}

func TestProbeBitrate(t *testing.T) {
	var p prober
	now := time.Unix(1000, 0)
	st := transport.Stats{RTT: 100 * time.Millisecond, CongestionWindow: 125_000} // 10 Mbit/s
	step := func(bits uint64) uint64 {
		m, _ := p.sample(now, st)
		now = now.Add(p.pause())
		st.BytesSent += bits / 8 * uint64(p.pause()/probeEvery)
		return m.Bitrate
	}
	run := func(rate uint64) (last uint64) {
		for range 20 {
			last = step(rate / 10)
		}
		return last
	}
	for _, tt := range []struct{ rate, want uint64 }{
		{0, 0},                   // idle: unknown
		{10_000, 0},              // next to nothing
		{1_000_000, 2_000_000},   // limited by what there is to send
		{8_000_000, 10_000_000},  // limited by the path
		{20_000_000, 10_000_000}, // a burst
		{0, 0},                   // idle again
	} {
		if got := run(tt.rate); got != tt.want {
			t.Errorf("sending %d bit/s: estimate %d, want %d", tt.rate, got, tt.want)
		}
		if quiet := p.pause() == probeQuiet; quiet != (tt.rate < minRate) {
			t.Errorf("sending %d bit/s: the next look is due after %v", tt.rate, p.pause())
		}
	}
	// A change of a tenth is told when the threshold has come down to it, not at once.
	p.last = message.Probe{Bitrate: 1000, RTT: st.RTT}
	p.sentAt = now
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{200 * time.Millisecond, false}, {6 * time.Second, false}, {6100 * time.Millisecond, true}} {
		if got := p.due(now.Add(tt.after), message.Probe{Bitrate: 1100, RTT: st.RTT}); got != tt.want {
			t.Errorf("a tenth after %v: %v", tt.after, got)
		}
	}
}

func TestStreamCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want uint64
	}{
		{errors.New("anything"), StreamInternal},
		{fmt.Errorf("wrapped: %w", media.ErrCancelled), StreamCancelled},
		{context.Canceled, StreamCancelled},
		{context.DeadlineExceeded, StreamControlTimeout},
		{session.ErrTimeout, StreamControlTimeout},
		{session.ErrGoingAway, StreamGoingAway},
		{session.ErrUnroutable, StreamUnroutable},
		{session.ErrUnauthorized, StreamUnroutable},
		{session.ErrUnsupported, StreamInternal},
		{fmt.Errorf("%w: subscriptions", session.ErrNoCapacity), StreamNoCapacity},
		{media.ErrNotFound, StreamNotFound},
		{media.ErrOld, StreamOld},
		{media.ErrEvicted, StreamEvicted},
		{media.ErrTooFarBehind, StreamTooFarBehind},
		{media.ErrMalformed, StreamMalformed},
		{media.ErrGroupTooLarge, StreamGroupTooLarge},
		{media.ErrFrameTooLarge, StreamFrameTooLarge},
		{&transport.SessionError{}, StreamSessionClosed},
		{net.ErrClosed, StreamSessionClosed},
		{&RequestError{Code: 64 + 503}, 64 + 503}, // passed on
		{&RequestError{Code: MaxCodeApplication + 1}, StreamInternal},
		{&RequestError{Code: 0x21}, StreamInternal},
	} {
		if got := StreamCode(tt.err); got != tt.want {
			t.Errorf("%v has code 0x%x, want 0x%x", tt.err, got, tt.want)
		}
	}
}

// TestPeerErrors wants codes to come back as the errors they stand for, except those that would be misread here.
func TestPeerErrors(t *testing.T) {
	for code := range uint64(0x60) {
		err := peerError(&transport.StreamError{Code: code, Remote: true})
		var refused *RequestError
		if !errors.As(err, &refused) || refused.Code != code {
			t.Fatalf("code 0x%x is %v", code, err)
		}
		if refused.Err != nil && StreamCode(err) != code {
			t.Errorf("code 0x%x becomes 0x%x", code, StreamCode(err))
		}
		if errors.Is(err, media.ErrCancelled) || errors.Is(err, net.ErrClosed) {
			t.Errorf("code 0x%x is taken for something of ours: %v", code, err)
		}
	}
	if err := peerError(&transport.StreamError{Code: StreamNotFound, Remote: true, Unmapped: true}); errors.Is(err, media.ErrNotFound) {
		t.Errorf("an unmapped code was understood: %v", err)
	}
	local := &transport.StreamError{Code: StreamNotFound}
	if err := peerError(local); !errors.Is(err, local) {
		t.Errorf("our own end became %v", err)
	}
}
