package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/lite/message"
)

func TestSchedule(t *testing.T) {
	s := schedule{begin: time.Unix(1000, 0), rate: 30, per: 60, first: 1}
	for _, tt := range []struct {
		n     uint64
		due   time.Duration
		group uint64
		index uint32
	}{
		{0, 0, 1, 0},
		{1, time.Second / 30, 1, 1},
		{59, 59 * time.Second / 30, 1, 59},
		{60, 2 * time.Second, 2, 0},
		{30 * 3600 * 24, 24 * time.Hour, 43201, 0}, // a day later it has not drifted
	} {
		if off := s.due(tt.n).Sub(s.begin) - tt.due; off.Abs() > time.Microsecond {
			t.Errorf("frame %d is due %v off", tt.n, off)
		}
		if group, index := s.place(tt.n); group != tt.group || index != tt.index {
			t.Errorf("frame %d is %d/%d", tt.n, group, index)
		}
	}
}

// Latency counts from the schedule: a source that is held up is charged for it.
func TestLateness(t *testing.T) {
	var l lateness
	due := time.Unix(1, 0)
	l.sent(due, due.Add(40*time.Millisecond))
	l.sent(due, due)
	h := l.take()
	if h.Count() != 2 || h.Max() != 40*time.Millisecond {
		t.Errorf("%d, %v", h.Count(), h.Max())
	}
	if h := l.take(); h.Count() != 0 {
		t.Error("what was taken is there again")
	}
}

// TestLedger compares the ledger with a plain set.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		per, base := rapid.Uint32Range(1, 5).Draw(t, "per"), rapid.Uint64Range(0, 100).Draw(t, "base")
		l := ledger{per: per, base: base}
		type place struct {
			group uint64
			index uint32
		}
		have := map[place]bool{}
		var twice uint64
		for range rapid.IntRange(0, 200).Draw(t, "n") {
			p := place{base + rapid.Uint64Range(0, 8).Draw(t, "group"), rapid.Uint32Range(0, per-1).Draw(t, "index")}
			fresh := l.add(p.group, p.index)
			if fresh == have[p] {
				t.Fatalf("%v: new %v, had %v", p, fresh, have[p])
			}
			if !fresh {
				twice++
			}
			have[p] = true
		}
		last := base + rapid.Uint64Range(0, 8).Draw(t, "last")
		var lost uint64
		for g := base; g <= last; g++ {
			for i := range per {
				if !have[place{g, i}] {
					lost++
				}
			}
		}
		if l.lost(last) != lost || l.twice != twice {
			t.Fatalf("lost %d, want %d; twice %d, want %d", l.lost(last), lost, l.twice, twice)
		}
	})
}

// A relay cannot make a ledger grow by a number.
func TestLedgerBounds(t *testing.T) {
	l := ledger{per: 2, base: 5}
	if l.add(5+maxAhead, 0) || l.add(5, 2) || l.add(4, 0) || l.twice != 3 || len(l.groups) != 0 {
		t.Errorf("%+v", l)
	}
}

// stored is a group stream of n frames.
func stored(t *testing.T, v message.Version, group uint64, n int, size int) []byte {
	t.Helper()
	b, err := message.Group{Sequence: group}.Append([]byte{byte(message.UniGroup)}, v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		payload := testmedia.Mesh.Append(nil, testmedia.Header{Sent: time.Unix(1, 0), Group: group, Index: uint32(i), Of: uint32(n)}, size)
		if b, err = message.AppendFrameHeader(b, v, message.FrameHeader{Delta: 33, Size: uint64(size)}); err != nil {
			t.Fatal(err)
		}
		b = append(b, payload...)
	}
	return b
}

// TestStream takes streams apart however they are cut.
func TestStream(t *testing.T) {
	for _, v := range Versions {
		b := stored(t, v, 1<<40, 3, 200)
		for step := 1; step <= len(b); step++ {
			s := stream{v: v}
			var got []uint32
			for part := range slices.Chunk(b, step) {
				err := s.feed(part, func(size uint64, h testmedia.Header, err error) {
					if err != nil || size != 200 || h.Group != 1<<40 {
						t.Fatalf("%v in steps of %d: %d bytes, %+v, %v", v, step, size, h, err)
					}
					got = append(got, h.Index)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff([]uint32{0, 1, 2}, got); diff != "" || s.group.Sequence != 1<<40 || s.state != atFrame {
				t.Fatalf("%v in steps of %d: %s", v, step, diff)
			}
		}
	}
}

// TestStreamFaults: damage shows, other streams are left alone, and headers have an end.
func TestStreamFaults(t *testing.T) {
	b := stored(t, message.Lite06, 7, 1, 100)
	b[len(b)-1]++
	s := stream{v: message.Lite06}
	faults := 0
	if err := s.feed(b, func(_ uint64, _ testmedia.Header, err error) {
		if errors.Is(err, testmedia.ErrChecksum) {
			faults++
		}
	}); err != nil || faults != 1 {
		t.Errorf("a damaged frame: %v, %d faults", err, faults)
	}
	setup := stream{v: message.Lite06}
	if err := setup.feed([]byte{byte(message.UniSetup), 1, 0}, nil); err != nil || setup.state != notGroup {
		t.Errorf("SETUP: %v, state %d", err, setup.state)
	}
	long := stream{v: message.Lite06}
	if err := long.feed([]byte{byte(message.UniGroup), 40}, nil); !errors.Is(err, errStream) {
		t.Errorf("a long GROUP: %v", err)
	}
	large := stream{v: message.Lite06, state: atFrame}
	if err := large.feed([]byte{0, 0xbf, 0xff, 0xff, 0xff}, nil); !errors.Is(err, message.ErrFrameTooLarge) {
		t.Errorf("a frame of a gigabyte: %v", err)
	}
}

// FuzzStream feeds anything in two pieces: no panic, and what is kept is bounded.
func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 2, 0, 7, 2, 40, 1, 2, 3}, 3)
	f.Add([]byte{1, 1, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		s := stream{v: message.Lite06}
		cut = min(max(cut, 0), len(b))
		for _, part := range [][]byte{b[:cut], b[cut:]} {
			if s.feed(part, func(uint64, testmedia.Header, error) {}) != nil {
				return
			}
		}
		if len(s.carry) > message.MaxFrameHeaderLen+maxGroupHeader {
			t.Errorf("keeps %d bytes", len(s.carry))
		}
	})
}

// TestFollower: a source without a rate stays so far ahead of its viewers, and goes on after a while if frames never come.
func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(1, 100)
		w.wake = make(chan struct{}, 1)
		timer := time.NewTimer(0)
		f := follower{watch: w, viewers: 2, ahead: 3, timer: timer}
		begin := time.Now()
		for n := range uint64(3) {
			if err := f.wait(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(begin) > 0 {
			t.Errorf("the first three waited for %v", time.Since(begin))
		}
		go func() {
			time.Sleep(time.Second)
			w.delivered.Add(2) // one frame at both
			w.wake <- struct{}{}
		}()
		if err := f.wait(t.Context(), 3); err != nil || time.Since(begin) != time.Second {
			t.Errorf("the fourth came after %v, %v", time.Since(begin), err)
		}
		if err := f.wait(t.Context(), 4); err != nil || time.Since(begin) != time.Second+skipAfter {
			t.Errorf("the fifth came after %v, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, io.EOF)
		defer cancel()
		if err := f.wait(ctx, 100); !errors.Is(err, io.EOF) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// TestAnnouncements counts names, not messages.
func TestAnnouncements(t *testing.T) {
	for _, v := range Versions {
		var b []byte
		say := func(a message.Announce) {
			var err error
			if b, err = a.Append(b, v); err != nil {
				t.Fatal(err)
			}
		}
		say(message.Announce{Kind: message.AnnounceStart, Suffix: "a"})
		say(message.Announce{Kind: message.AnnounceStart, Suffix: "b"})
		if v.HasAnnounceIDs() {
			say(message.Announce{Kind: message.AnnounceRestart, ID: 1, Warm: 3})
			say(message.Announce{Kind: message.AnnounceEnd, ID: 0})
		} else {
			say(message.Announce{Kind: message.AnnounceStart, Suffix: "b", Hops: []message.Hop{4}})
			say(message.Announce{Kind: message.AnnounceEnd, Suffix: "a"})
		}
		say(message.Announce{Kind: message.AnnounceStart, Suffix: "a"})
		var got []string
		tell := func(name string, active bool) bool {
			if !active {
				name = "-" + name
			}
			got = append(got, name)
			return true
		}
		if err := (&thin{v: v}).announcements(bytes.NewReader(b), tell); !errors.Is(err, io.EOF) {
			t.Errorf("%v ends with %v", v, err)
		}
		if diff := cmp.Diff([]string{"a", "b", "-a", "a"}, got); diff != "" {
			t.Errorf("%v: %s", v, diff)
		}
	}
}

// TestExpect: a listener tells once, when the number is right, also if it is right from the beginning.
func TestExpect(t *testing.T) {
	l := &listener{active: 2}
	select {
	case <-l.expect(2):
	default:
		t.Error("what is there already is not told")
	}
	at := l.expect(3)
	l.active = 3
	l.check()
	l.active = 4
	l.check()
	if len(at) != 1 || l.missing() != 1 {
		t.Errorf("%d told, %d missing", len(at), l.missing())
	}
}

// TestLoad does the sums of CPU time.
func TestLoad(t *testing.T) {
	at := time.Unix(1, 0)
	m := meter{pids: []int{7, 8}}
	a := usage{at: at, relays: []Process{{CPU: time.Second}, {}}, own: time.Second, machine: 10 * time.Second}
	b := usage{
		at: at.Add(10 * time.Second), own: 9500 * time.Millisecond, machine: 26 * time.Second,
		relays: []Process{{CPU: 6 * time.Second, RSS: 3 << 20, Peak: 4 << 20}, {CPU: 500 * time.Millisecond}},
	}
	got := m.load(a, b, 97)
	want := Load{
		Seconds: 10, Own: 85, OwnPeak: 97, OwnCores: got.OwnCores, Others: 20, Saturated: got.OwnCores == 1,
		Relays: []RelayLoad{{PID: 7, CPU: 5, Percent: 50, RSS: 3, Peak: 4}, {PID: 8, CPU: 0.5, Percent: 5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.relayCPU() != 5.5 {
		t.Errorf("relays spent %v", got.relayCPU())
	}
	if got := m.load(a, usage{at: b.at, relays: b.relays, own: b.own}, 0); got.Others != 0 {
		t.Errorf("a machine that does not tell: others %v", got.Others)
	}
}

// TestWarnings: a generator at its limit says so, whatever else is good.
func TestWarnings(t *testing.T) {
	var late, onTime latency.Histogram
	late.Add(2 * lateLimit)
	onTime.Add(time.Millisecond)
	for name, tt := range map[string]struct {
		load Load
		late *latency.Histogram
		want []string
	}{
		"fine":      {Load{Own: 50, OwnPeak: 60, OwnCores: 1}, &onTime, nil},
		"saturated": {Load{Own: 90, OwnPeak: 99, OwnCores: 1, Saturated: true}, nil, []string{"was at its limit:"}},
		"for once":  {Load{Own: 50, OwnPeak: 99, OwnCores: 1}, nil, []string{"for a part of the window"}},
		"held up":   {Load{Own: 50, OwnPeak: 60, OwnCores: 1}, &late, []string{"sent late"}},
	} {
		r := Result{Load: tt.load}
		got := r.finish(tt.late)
		if len(got.Warnings) != len(tt.want) || !got.Good {
			t.Errorf("%s: %v", name, got.Warnings)
			continue
		}
		for i, part := range tt.want {
			if !strings.Contains(got.Warnings[i], part) || !strings.Contains(string(got.Table()), part) {
				t.Errorf("%s: %v", name, got.Warnings)
			}
		}
	}
	bad := &Result{}
	bad.fault(0, "nothing")
	bad.fault(3, "frames lost")
	if got := bad.finish(nil); got.Good || !strings.Contains(string(got.Table()), "BAD: 3 frames lost") {
		t.Errorf("%v\n%s", got.Faults, got.Table())
	}
}

// TestJSON holds on to the names that scripts use.
func TestJSON(t *testing.T) {
	r := Result{Mode: "fanout", Carrier: "quic", Version: "moq-lite-06", Load: Load{Relays: []RelayLoad{{}}}, Media: &MediaFigures{
		PerGbit: 1, PerFrame: 1, PerViewer: 1,
	}}
	text, err := json.Marshal(r.finish(nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"mode":"fanout","carrier":"quic","version":"moq-lite-06","good":true,"faults":[],"warnings":[],` +
		`"window_s":0,"relays":[{"pid":0,"cpu_s":0,"cpu_pct":0,"rss_mib":0,"rss_peak_mib":0}],` +
		`"gen_cpu_pct":0,"gen_cpu_peak_pct":0,"gen_cores":0,"gen_saturated":false,"other_cpu_pct":0,` +
		`"media":{"viewers":0,"rate":0,"frame_bytes":0,"group_frames":0,"frames":0,"mbit_s":0,"lost":0,"twice":0,"wrong":0,"ended":0,` +
		`"latency_ms":{"p50":0,"p95":0,"p99":0,"max":0},"late_ms":{"p50":0,"p95":0,"p99":0,"max":0},` +
		`"relay_cpu_s_per_gbit":1,"relay_cpu_us_per_frame":1,"relay_kib_per_viewer":1,"gen_cpu_us_per_frame":0,"gen_cpu_pct_per_viewer":0}}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}
