//go:build drill && linux

package longlink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/linklab"
	"github.com/moqmesh/moqmesh/transport"
)

// pipe is the rate of the link in all measurements, in bit/s.
const pipe = 100_000_000

// measured is how long a flow is measured.
const measured = 5 * time.Second

// warm is how long a flow runs before that.
func warm(rtt time.Duration) time.Duration { return 3*time.Second + 25*rtt }

// link is a link with a round trip and a loss in each direction.
func link(rtt time.Duration, loss float64) linklab.Link {
	return linklab.Link{Rate: pipe, Delay: rtt / 2, Loss: loss}
}

func lab(t *testing.T, l linklab.Link) *linklab.Lab {
	t.Helper()
	made, err := linklab.New(l)
	if errors.Is(err, linklab.ErrNotRoot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// numbers reads a list of numbers from the environment, so that a run can be done in parts.
func numbers(t *testing.T, name string, all ...float64) []float64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return all
	}
	var out []float64
	for part := range strings.SplitSeq(text, ",") {
		out = append(out, must(strconv.ParseFloat(part, 64))(t))
	}
	return out
}

// TestGoodput prints what each way carries when there is more to send than it can carry. At 100 ms and one packet in a
// thousand lost, qmux over BBR must fill four fifths of the pipe.
func TestGoodput(t *testing.T) {
	for _, rtt := range numbers(t, "LONGLINK_RTT", 20, 50, 100, 200) {
		for _, percent := range numbers(t, "LONGLINK_LOSS", 0, 0.1, 1, 3) {
			for _, w := range ways {
				t.Run(fmt.Sprintf("%gms/%g%%/%s", rtt, percent, w.name), func(t *testing.T) {
					trip := time.Duration(rtt) * time.Millisecond
					l := lab(t, link(trip, percent/100))
					rate := flood(t, w.connect(t, l)).over(warm(trip), measured)
					t.Logf("RESULT goodput %g ms %g %% %s: %s Mbit/s", rtt, percent, w.name, mbit(rate))
					if w.name == "qmux, bbr" && rtt == 100 && percent == 0.1 && rate < 0.8*pipe {
						t.Errorf("less than four fifths of the pipe")
					}
				})
			}
		}
	}
}

// TestShare prints what is left to a TCP connection with cubic, on a link without loss: qmux over BBR must leave it a fifth.
func TestShare(t *testing.T) {
	for _, rtt := range numbers(t, "LONGLINK_RTT", 20, 100) {
		for _, w := range ways {
			if w.name == "4 QUIC" {
				continue
			}
			t.Run(fmt.Sprintf("%gms/%s", rtt, w.name), func(t *testing.T) {
				l := lab(t, link(time.Duration(rtt)*time.Millisecond, 0))
				beside := plainTCP(t, l, "cubic")
				time.Sleep(time.Second)
				ours := flood(t, w.connect(t, l))
				time.Sleep(35 * time.Second) // for both to settle
				var wg sync.WaitGroup
				var theirs, rate float64
				wg.Go(func() { theirs = beside.over(0, 15*time.Second) })
				wg.Go(func() { rate = ours.over(0, 15*time.Second) })
				wg.Wait()
				t.Logf("RESULT share %g ms %s: %s Mbit/s, cubic %s", rtt, w.name, mbit(rate), mbit(theirs))
				if w.name == "qmux, bbr" && theirs < 0.2*pipe {
					t.Errorf("less than a fifth is left")
				}
			})
		}
	}
}

// TestLatency prints how long frames take that are far from filling the link: 30 a second of 12.5 kB, a stream a second.
func TestLatency(t *testing.T) {
	for _, rtt := range numbers(t, "LONGLINK_RTT", 100) {
		for _, percent := range numbers(t, "LONGLINK_LOSS", 0, 0.1, 1) {
			for _, w := range ways {
				if strings.Contains(w.name, "4 QUIC") || strings.Contains(w.name, "16 QUIC") {
					continue
				}
				t.Run(fmt.Sprintf("%gms/%g%%/%s", rtt, percent, w.name), func(t *testing.T) {
					l := lab(t, link(time.Duration(rtt)*time.Millisecond, percent/100))
					took := frames(t, w.connect(t, l)[0], 15*time.Second)
					slices.Sort(took)
					at := func(share float64) time.Duration {
						return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
					}
					t.Logf("RESULT latency %g ms %g %% %s: p50 %v, p99 %v, most %v of %d frames",
						rtt, percent, w.name, at(0.5), at(0.99), at(1), len(took))
				})
			}
		}
	}
}

// flow counts the bytes that arrive.
type flow struct{ bytes atomic.Int64 }

// over returns the rate, in bit/s, within a time that begins after another one.
func (f *flow) over(after, during time.Duration) float64 {
	time.Sleep(after)
	start, begin := f.bytes.Load(), time.Now()
	time.Sleep(during)
	return float64(f.bytes.Load()-start) * 8 / time.Since(begin).Seconds()
}

// flood sends groups of 256 KiB, each on a stream of its own and two at a time, over every connection until the test ends.
func flood(t *testing.T, pairs []pair) *flow {
	t.Helper()
	f := new(flow)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		for _, p := range pairs {
			wg.Go(func() { p.server.Close(0, "") })
			wg.Go(func() { p.client.Close(0, "") })
		}
		wg.Wait()
	})
	for _, p := range pairs {
		for range 2 {
			wg.Go(func() { sendGroups(ctx, p.server) })
		}
		wg.Go(func() {
			for {
				s, err := p.client.AcceptUniStream(ctx)
				if err != nil {
					return
				}
				wg.Go(func() { f.drain(s) })
			}
		})
	}
	return f
}

func sendGroups(ctx context.Context, c transport.Conn) {
	group := make([]byte, 256<<10)
	for {
		s, err := c.OpenUniStream(ctx)
		if err != nil {
			return
		}
		s.SetPriority(5)
		if _, err := s.Write(group); err != nil {
			return
		}
		_ = s.Close()
	}
}

// drain counts what a stream brings.
func (f *flow) drain(r io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := r.Read(b)
		f.bytes.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// plainTCP is a TCP connection that has always something to send.
func plainTCP(t *testing.T, l *linklab.Lab, congestion string) *flow {
	t.Helper()
	ln := must(l.A.Listen())(t)
	nc := must(l.B.Dial(ln.Addr().String()))(t)
	server := must(ln.Accept())(t)
	_ = ln.Close()
	set(t, server, congestion)
	f := new(flow)
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 64<<10)
		for {
			if _, err := server.Write(b); err != nil {
				return
			}
		}
	})
	wg.Go(func() { f.drain(nc) })
	t.Cleanup(func() { _ = nc.Close(); _ = server.Close(); wg.Wait() })
	return f
}

const frameSize = 12_500

// frames sends frames for a while and returns how long each took.
func frames(t *testing.T, p pair, during time.Duration) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	wg.Go(func() {
		for {
			s, err := p.client.AcceptUniStream(ctx)
			if err != nil {
				return
			}
			wg.Go(func() {
				b := make([]byte, frameSize)
				for {
					if _, err := io.ReadFull(s, b); err != nil {
						return
					}
					mu.Lock()
					took = append(took, time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(b)))))
					mu.Unlock()
				}
			})
		}
	})
	sendFrames(t, p.server, during)
	time.Sleep(2 * time.Second) // for the last ones
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(took)
}

func sendFrames(t *testing.T, c transport.Conn, during time.Duration) {
	t.Helper()
	const every = time.Second / 30
	b := make([]byte, frameSize)
	var s transport.SendStream
	start := time.Now()
	for i := 0; time.Since(start) < during; i++ {
		if i%30 == 0 {
			if s != nil {
				_ = s.Close()
			}
			s = must(c.OpenUniStream(t.Context()))(t)
		}
		binary.BigEndian.PutUint64(b, uint64(time.Now().UnixNano()))
		if _, err := s.Write(b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * every)))
	}
	_ = s.Close()
}
