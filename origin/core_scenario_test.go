package origin

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// TestScenarios runs testdata/*.txt, the worked examples of resume: one logical track, its sources and its readers. The
// language:
//
//	track [hedge] [cap=5s] [fixed-timescale=n]    starts a track, with one source per line:
//	  NAME WIRE [timescale=n] [retention=7s] [priority=n] [order=n] [unstamped] [ahead=n] [local] [held] [hops=n,m]
//	       [refuses=words-with-dashes] [on=NAME]
//
// WIRE is the version of moq-lite, 02 to 06, or "range" for one that has ranges and cannot update them. A held source
// leaves questions open until "answers"; one that refuses says so when it is asked for the properties. hops is the hop
// list of its route, oldest first, the peer last; on names a source on the same session.
//
//	run                          lines of TIME [SUBJECT VERB ...], the time in milliseconds:
//	  routes A B! | C            the routes now, best first; ! = GOAWAY, | = the next shorter prefix
//	  r1 joins [10] [2s] [start=g,f] [end=g,f]     priority and max age, as shown
//	  r1 wants ...; r1 leaves    the same as an update; the end
//	  A 8:0..4 9:0@12000 9* 8! 7 frames (at a timestamp), a clean end of the group, a reset, a header alone
//	  A flows 8:0..39            a frame every 33 ms, the first one now
//	  A start 9; A end 9; A drop 8..9; A datagram 5
//	  A done; A refuses; A leaves     ends of the subscription: clean, by an error, by GOAWAY
//	  A dies                     its session ends, and with it its routes
//	  A cut                      the same, without resets of its streams
//	  A silent; A heard          nothing arrives from its session; it does again
//	  A suspect                  another track has found that its session is silent (H11)
//	  A answers                  what was held back
//	  evict; zero; stall         room is needed; the time counts from here; we do not run until that time
//
// Output: what the core does, with the time, as "open A PRIORITY MAXAGE [START,END)"; "stopped" is what a copy may not
// deliver. Then what each reader has: groups as FRAMES, * = complete, ! = reset; and how its track ended.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var s *scenario
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				switch d.Cmd {
				case "track":
					s.stop()
					s = newScenario(t, d)
					return ""
				case "run":
					return s.run(d)
				}
				d.Fatalf(t, "unknown command %q", d.Cmd)
				return ""
			})
			s.stop()
		})
	})
}

type scenario struct {
	*coreRig
	t      *testing.T
	zero   time.Time
	ranked []string
	order  []string // readers, as they came
}

func newScenario(t *testing.T, d *datadriven.TestData) *scenario {
	t.Helper()
	s := &scenario{coreRig: newCoreRig(t), t: t, zero: time.Now()}
	s.stamp = func() string { return fmt.Sprintf("%d ", s.at()) }
	for line := range strings.Lines(d.Input) {
		if f := strings.Fields(line); len(f) > 0 {
			s.addSource(f)
		}
	}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "hedge":
			s.hedges()
		case "cap":
			s.core.maxAge = s.duration(arg.Vals[0])
		case "fixed-timescale":
			info := testInfo()
			info.Timescale = s.number(arg.Vals[0])
			s.core.fixed = &info
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
	}
	return s
}

var testWires = map[string]session.Caps{"06": lite06, "05": lite05, "04": lite04, "02": lite02, "range": {Range: true}}

func (s *scenario) addSource(f []string) {
	caps, ok := testWires[f[1]]
	if !ok {
		s.Fatalf("unknown wire %q", f[1])
	}
	src := s.source(f[0], caps)
	for _, arg := range f[2:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "timescale":
			src.info.Timescale = s.number(value)
		case "retention":
			src.info.MaxAge = s.duration(value)
		case "priority":
			src.info.Priority = uint8(s.number(value))
		case "order":
			src.info.Order = media.Order(s.number(value))
		case "unstamped":
			src.info.Unstamped = true
		case "ahead":
			src.ahead = s.number(value)
		case "local":
			src.local = true
		case "held":
			src.held = true
		case "on":
			src.link = s.sources[value].link
		case "refuses":
			src.err = errors.New(strings.ReplaceAll(value, "-", " "))
		case "hops":
			var hops []route.Hop
			for h := range strings.SplitSeq(value, ",") {
				hops = append(hops, route.Hop(s.number(h)))
			}
			src.hops, src.peer = hopString(hops), hops[len(hops)-1]
		default:
			s.Fatalf("unknown option %q", arg)
		}
	}
}

func (s *scenario) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.Fatalf("%v", err)
	}
	return n
}

func (s *scenario) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatalf("%v", err)
	}
	return d
}

func (s *scenario) at() int64 { return time.Since(s.zero).Milliseconds() }

// until lets time pass.
func (s *scenario) until(at int64) {
	if d := time.Until(s.zero.Add(time.Duration(at) * time.Millisecond)); d > 0 {
		s.pass(d)
	}
}

func (s *scenario) run(d *datadriven.TestData) string {
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) > 1 && f[1] == "stall" {
			time.Sleep(time.Until(s.zero.Add(time.Duration(s.number(f[0])) * time.Millisecond)))
			s.do(tick{}) // the timer; nothing was read yet
			continue
		}
		s.until(int64(s.number(f[0])))
		s.beat()
		if len(f) > 1 {
			s.line(f[1], f[2:])
		}
		synctest.Wait()
	}
	out := strings.Builder{}
	for _, l := range s.log {
		fmt.Fprintln(&out, l)
	}
	s.log = nil
	for _, name := range s.order {
		fmt.Fprintln(&out, strings.TrimRight(fmt.Sprintf("%s has %s", name, s.has(name)), " "))
	}
	return out.String()
}

// has is what a reader has got, and how its track ended.
func (s *scenario) has(name string) string {
	tr := s.readers[name]
	text := tr.text()
	switch err := tr.ended(); {
	case errors.Is(err, io.EOF):
		text += " end"
	case err != nil:
		text += " failed: " + err.Error()
	}
	return text
}

func (s *scenario) line(subject string, f []string) {
	switch {
	case subject == "zero":
		s.zero = time.Now()
	case subject == "evict":
		s.do(evicted{})
	case subject == "routes":
		s.ranked = f
		s.rank(f...)
	case subject[0] == 'r':
		s.readerLine(subject, f)
	default:
		s.sourceLine(subject, f)
	}
}

func (s *scenario) readerLine(name string, f []string) {
	if f[0] == "leaves" {
		s.leave(name)
		s.order = slices.DeleteFunc(s.order, func(n string) bool { return n == name })
		return
	}
	want := live()
	for _, arg := range f[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch {
		case key == "start":
			want.Start = sub(0, 0, value, "").Start
		case key == "end":
			want.End = sub(0, 0, value, "").Start
		case strings.HasSuffix(arg, "s"):
			want.MaxAge = s.duration(arg)
		default:
			want.Priority = uint8(s.number(arg))
		}
	}
	if f[0] == "wants" {
		s.update(name, want)
		return
	}
	s.join(name, want)
	if s.readers[name] != nil && !slices.Contains(s.order, name) {
		s.order = append(s.order, name)
	}
}

func (s *scenario) sourceLine(name string, f []string) {
	switch f[0] {
	case "flows":
		s.flow(name, f[1])
	case "start":
		s.start(name, s.number(f[1]))
	case "end":
		s.end(name, s.number(f[1]))
	case "drop":
		first, last := s.span(f[1])
		_, c := s.copyOf(name)
		c.media.Drop(first, last)
		s.do(copyMoved{})
	case "datagram":
		_, c := s.copyOf(name)
		c.media.Datagram(s.number(f[1]), s.number(f[1])*1000, []byte(f[1]))
		s.do(copyMoved{})
	case "done":
		s.done(name, nil)
	case "refuses":
		s.done(name, errTest)
	case "leaves":
		s.done(name, session.ErrGoingAway)
	case "dies", "cut":
		s.ranked = slices.DeleteFunc(slices.Clone(s.ranked), func(n string) bool { return strings.TrimSuffix(n, "!") == name })
		if f[0] == "cut" {
			s.cut(name, net.ErrClosed)
		} else {
			s.done(name, net.ErrClosed)
		}
		s.rank(s.ranked...)
	case "silent":
		s.sources[name].deaf = true
	case "heard":
		s.sources[name].deaf = false
	case "suspect":
		s.sources[name].link.suspicious.Store(true)
		if s.core.track != nil { // it has begun
			s.do(tick{})
		}
	case "answers":
		s.answer(name)
	default:
		for _, frames := range f {
			s.frames(name, frames)
		}
	}
}

func (s *scenario) span(text string) (first, last uint64) {
	from, to, more := strings.Cut(text, "..")
	first = s.number(from)
	if !more {
		return first, first
	}
	return first, s.number(to)
}

// frames has a source send what text says, such as "8:0..4*".
func (s *scenario) frames(name, text string) {
	body, fin := strings.CutSuffix(text, "*")
	body, reset := strings.CutSuffix(body, "!")
	group, frames, some := strings.Cut(body, ":")
	frames, stamp, stamped := strings.Cut(frames, "@")
	g := s.number(group)
	if stamped {
		ts := s.number(stamp)
		s.ts = &ts
		defer func() { s.ts = nil }()
	}
	if some {
		from, to := s.span(frames)
		if err := s.try(name, g, from, to); err != nil {
			s.log = append(s.log, fmt.Sprintf("%d %s stopped: %s: %v", s.at(), name, text, err))
			return
		}
	}
	if !some && !fin && !reset { // the header of the group
		_, c := s.copyOf(name)
		w, err := c.media.Group(g, 0)
		if err != nil {
			s.Fatalf("group %d: %v", g, err)
		}
		c.writers[g] = w
	}
	if fin {
		s.finish(name, g)
	}
	if reset {
		s.reset(name, g)
	}
}

func (s *scenario) flow(name, text string) {
	group, frames, _ := strings.Cut(text, ":")
	from, to := s.span(frames)
	for f := from; f <= to; f++ {
		s.beat()
		s.frames(name, fmt.Sprintf("%s:%d", group, f))
		if f < to {
			s.pass(33 * time.Millisecond)
		}
	}
}

// stop ends what is left of a scenario.
func (s *scenario) stop() {
	if s == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.readers)) {
		s.readers[name].close()
	}
	synctest.Wait()
}
