package origin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/moqmesh/moqmesh/media"
)

// testReader collects what a reader gets, each group in a goroutine of its own.
type testReader struct {
	media *media.Reader
	sub   media.Subscription
	wake  chan struct{}
	stop  chan struct{}

	mu      sync.Mutex
	waiters []*media.Waiter
	got     map[uint64][]string
	ends    map[uint64]string // how a group ended
	err     error             // how the track ended
}

// Wake implements media.Waker.
func (tr *testReader) Wake() {
	select {
	case tr.wake <- struct{}{}:
	default:
	}
}

func newTestReader(s media.Subscription) *testReader {
	return &testReader{
		sub: s, wake: make(chan struct{}, 1), stop: make(chan struct{}),
		got: make(map[uint64][]string), ends: make(map[uint64]string),
	}
}

// run takes groups until the track ends or the reader is closed.
func (tr *testReader) run() {
	for {
		g, err := tr.media.Next()
		switch {
		case err != nil:
			tr.mu.Lock()
			tr.err = err
			tr.mu.Unlock()
			return
		case g != nil:
			w := media.NewWaiter()
			tr.mu.Lock()
			tr.waiters = append(tr.waiters, w)
			tr.mu.Unlock()
			go tr.read(g, w)
			continue
		}
		select {
		case <-tr.wake:
		case <-tr.stop:
			return
		}
	}
}

func (tr *testReader) read(g *media.GroupReader, w *media.Waiter) {
	defer g.Close()
	for {
		f, err := g.ReadFrame(w)
		tr.mu.Lock()
		if err != nil {
			if !errors.Is(err, media.ErrCancelled) {
				tr.ends[g.Sequence()] = err.Error()
			}
			tr.mu.Unlock()
			return
		}
		tr.got[g.Sequence()] = append(tr.got[g.Sequence()], string(f.Payload))
		tr.mu.Unlock()
	}
}

func (tr *testReader) close() {
	close(tr.stop)
	tr.media.Close()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, w := range tr.waiters {
		w.Cancel()
	}
}

// ended says how the track ended for the reader.
func (tr *testReader) ended() error {
	synctest.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.err
}

// text says what a reader has got: "8:0..4 9:*" in the notation of the worked examples; a group that was reset ends
// with "!".
func (tr *testReader) text() string {
	synctest.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var out []string
	seqs := make([]uint64, 0, len(tr.got))
	for seq := range tr.got {
		seqs = append(seqs, seq)
	}
	for seq := range tr.ends {
		if !slices.Contains(seqs, seq) {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		frames := tr.got[seq]
		s := fmt.Sprintf("%d:", seq)
		if n := len(frames); n > 0 {
			var g, first uint64
			_, _ = fmt.Sscanf(frames[0], "%d:%d", &g, &first)
			for i, f := range frames {
				if f != fmt.Sprintf("%d:%d", seq, first+uint64(i)) {
					return fmt.Sprintf("out of order: %v", frames)
				}
			}
			s += fmt.Sprintf("%d..%d", first, first+uint64(n)-1)
		}
		switch end := tr.ends[seq]; end {
		case "":
		case io.EOF.Error():
			s += "*"
		default:
			s += "!"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}
