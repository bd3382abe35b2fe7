//go:build drill && linux

package linklab

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

func lab(t *testing.T, link Link) *Lab {
	t.Helper()
	l, err := New(link)
	if errors.Is(err, ErrNotRoot) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// arrivals sends datagrams of 1000 bytes with a pause between them and returns how long each took.
func arrivals(t *testing.T, l *Lab, n int, pause time.Duration) (took []time.Duration, span time.Duration) {
	t.Helper()
	in, err := l.B.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_ = in.(*net.UDPConn).SetReadBuffer(4 << 20)
	out, err := l.A.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2000)
		var first, last time.Time
		for {
			if _, _, err := in.ReadFrom(b); err != nil {
				span = last.Sub(first)
				return
			}
			if last = time.Now(); first.IsZero() {
				first = last
			}
			took = append(took, last.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(b)))))
		}
	}()
	b := make([]byte, 972) // 1000 with UDP and IP
	start := time.Now()
	for i := range n {
		binary.BigEndian.PutUint64(b, uint64(time.Now().UnixNano()))
		if _, err := out.WriteTo(b, in.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * pause)))
	}
	_ = in.SetReadDeadline(time.Now().Add(time.Second))
	<-done
	return took, span
}

// The delay is what is asked for, and little more.
func TestDelay(t *testing.T) {
	l := lab(t, Link{Delay: 30 * time.Millisecond})
	took, _ := arrivals(t, l, 100, 5*time.Millisecond)
	slices.Sort(took)
	if len(took) != 100 || took[0] < 30*time.Millisecond || took[50] > 40*time.Millisecond {
		t.Fatalf("%d of 100 arrived, after %v at the least and %v in the middle", len(took), took[0], took[len(took)/2])
	}
}

// Of many packets the share that is asked for is lost, in both directions alike.
func TestLoss(t *testing.T) {
	l := lab(t, Link{Loss: 0.03})
	const n = 20_000
	took, _ := arrivals(t, l, n, 50*time.Microsecond)
	ab, _ := l.Counters()
	if share := float64(ab.Lost) / n; math.Abs(share-0.03) > 0.006 || ab.Dropped > 0 {
		t.Errorf("lost %.4f, %+v", share, ab)
	}
	if missing := n - int64(len(took)); missing < ab.Lost || missing > ab.Lost+n/200 {
		t.Errorf("%d are missing, %d were lost", missing, ab.Lost)
	}
}

// A queue that is full drops; what passes it does so at the rate, and waits for as long as the queue is.
func TestRateAndQueue(t *testing.T) {
	l := lab(t, Link{Rate: 8_000_000, Queue: 50_000}) // a packet in 1 ms, 50 in the queue
	took, span := arrivals(t, l, 2000, 500*time.Microsecond)
	rate := float64(len(took)-1) * 8000 / span.Seconds()
	if math.Abs(rate-8e6) > 0.4e6 {
		t.Errorf("%.0f bit/s", rate)
	}
	slices.Sort(took)
	if longest := took[len(took)*9/10]; longest < 45*time.Millisecond || longest > 65*time.Millisecond {
		t.Errorf("%v in the queue", longest)
	}
	if ab, _ := l.Counters(); ab.Dropped == 0 || ab.Lost != 0 {
		t.Errorf("%+v", ab)
	}
}

// A TCP connection fills the link, and finds the round trip there.
func TestTCP(t *testing.T) {
	l := lab(t, Link{Rate: 20_000_000, Delay: 10 * time.Millisecond})
	ln, err := l.A.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		b := make([]byte, 64<<10)
		for {
			if _, err := nc.Write(b); err != nil {
				return
			}
		}
	}()
	begin := time.Now()
	nc, err := l.B.Dial(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if took := time.Since(begin); took < 20*time.Millisecond || took > 60*time.Millisecond {
		t.Errorf("connected after %v", took)
	}
	_, _ = io.CopyN(io.Discard, nc, 1<<20)
	begin = time.Now()
	const size = 5 << 20
	if _, err := io.CopyN(io.Discard, nc, size); err != nil {
		t.Fatal(err)
	}
	if rate := size * 8 / time.Since(begin).Seconds(); rate < 16e6 || rate > 20.5e6 {
		t.Errorf("%.1f Mbit/s of 20", rate/1e6)
	}
}
