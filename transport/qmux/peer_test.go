package qmux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/transport"
)

// peer plays the other end of a connection by hand.
type peer struct {
	t  *testing.T
	nc net.Conn
	in *byteStream
	c  *Conn
}

// meet starts a server of a draft whose client is played, in a bubble.
func meet(t *testing.T, d Draft, cfg Config) *peer {
	t.Helper()
	ours, theirs := net.Pipe()
	c, err := NewStream(t.Context(), ours, d.String()+".moq-lite-06", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(0, ""); _ = theirs.Close() })
	return &peer{t: t, nc: theirs, in: newByteStream(theirs, d), c: c}
}

// hello exchanges parameters.
func (p *peer) hello(theirs params) {
	p.t.Helper()
	p.want("params")
	p.send(theirs.append(nil))
}

// send writes frames, in one record where there are records.
func (p *peer) send(frames ...[]byte) {
	p.t.Helper()
	b := &batch{}
	start := b.begin()
	for _, f := range frames {
		b.b = append(b.b, f...)
	}
	b.end(start)
	if err := p.in.send(b); err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
}

func describe(f frame) string {
	switch f.typ {
	case frameParams:
		return "params"
	case frameStream:
		end := ""
		if f.fin {
			end = " end"
		}
		return fmt.Sprintf("stream %d %d%s", f.id, len(f.data), end)
	case frameReset:
		return fmt.Sprintf("reset %d code %d at %d", f.id, f.code, f.value)
	case frameStop:
		return fmt.Sprintf("stop %d code %d", f.id, f.code)
	case frameMaxData:
		return fmt.Sprintf("max %d", f.value)
	case frameMaxStreamData:
		return fmt.Sprintf("max stream %d %d", f.id, f.value)
	case frameMaxStreamsBidi, frameMaxStreamsUni:
		return fmt.Sprintf("max streams %d %d", f.typ-frameMaxStreamsBidi, f.value)
	case frameConnectionClose:
		return fmt.Sprintf("abort %d", f.code)
	case frameApplicationClose:
		return fmt.Sprintf("close %d %s", f.code, f.data)
	case framePing:
		return fmt.Sprintf("ping %d", f.value)
	case framePong:
		return fmt.Sprintf("pong %d", f.value)
	case frameDatagram:
		return fmt.Sprintf("datagram %s", f.data)
	}
	return fmt.Sprintf("%+v", f)
}

// want reads frames, over records, and compares them.
func (p *peer) want(want ...string) {
	p.t.Helper()
	var got []string
	for len(got) < len(want) {
		more, err := p.record()
		if err != nil {
			p.t.Fatalf("got %q, then %v; want %q", got, err, want)
		}
		got = append(got, more...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Fatalf("frames (-want +got):\n%s", diff)
	}
}

// record waits for a record and tells its frames.
func (p *peer) record() (frames []string, err error) {
	p.t.Helper()
	record, err := p.in.next()
	for err == nil && len(record) > 0 {
		f, n, err := p.in.parser.parse(record)
		if err != nil {
			p.t.Fatal(err)
		}
		record = record[n:]
		frames = append(frames, describe(f))
	}
	return frames, err
}

// ended waits for the end of the connection, and returns how it ended.
func (p *peer) ended() *transport.SessionError {
	p.t.Helper()
	<-p.c.Context().Done()
	end, ok := errors.AsType[*transport.SessionError](context.Cause(p.c.Context()))
	if !ok {
		p.t.Fatalf("ended with %v", context.Cause(p.c.Context()))
	}
	return end
}

func data(d Draft, id uint64, payload string, fin bool) []byte {
	return append(d.appendStream(nil, id, 0, len(payload), fin), payload...)
}

// Whatever a peer does wrong ends the connection with the code for that, and says so to our own side too.
func TestViolations(t *testing.T) {
	small := Config{MaxStreams: 4, ReceiveWindow: minWindow, StreamReceiveWindow: minWindow} // windows begin with 8192
	long := strings.Repeat("x", 8193)
	for name, frames := range map[string][][]byte{
		"unknown frame":                  {{0x1b}},
		"cut frame":                      {{0x0e, 0}},
		"second parameters":              {goldenParams.append(nil)},
		"stream above the limit":         {data(Draft02, 4<<2, "", false)},
		"uni stream above the limit":     {data(Draft02, 4<<2|2, "", false)},
		"a stream of ours, unopened":     {data(Draft02, 1, "x", false)},
		"reset of ours, unopened":        {Draft02.appendReset(nil, 1, 0, 0)},
		"data on our uni stream":         {data(Draft02, 3, "x", false)},
		"reset of our uni stream":        {Draft02.appendReset(nil, 3, 0, 0)},
		"stop of their uni stream":       {appendStop(nil, 2, 0)},
		"credit for their uni stream":    {appendMaxStreamData(nil, 2, 100)},
		"too much on a stream":           {data(Draft02, 0, long, false)},
		"too much in all":                {data(Draft02, 0, long[:5000], false), data(Draft02, 2, long[:5000], false)},
		"a final size above the limit":   {Draft02.appendReset(nil, 0, 0, 8193)},
		"ping that does not rise":        {appendLimit(nil, framePing, 5), appendLimit(nil, framePing, 5)},
		"answer to no ping":              {appendLimit(nil, framePong, 0)},
		"streams out of range":           {{0x12, 0xd0, 0, 0, 0, 0, 0, 0, 1}},
		"reliable reset beyond its size": {{0x24, 0, 0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small.KeepAlive = -1
				p := meet(t, Draft02, small)
				p.hello(goldenParams)
				p.send(frames...)
				p.want("abort 1002")
				_ = p.nc.Close()
				end := p.ended()
				if _, ok := errors.AsType[*ProtocolError](end.Transport); !ok || end.Remote {
					t.Errorf("ended with %v", end)
				}
			})
		})
	}
}

// What goes wrong before the parameters, and with records.
func TestBadStart(t *testing.T) {
	inBand := goldenParams
	inBand.protocols = []string{"moql"}
	small := goldenParams
	small.maxRecord = 16381
	for name, bytes := range map[string][]byte{
		"a frame before the parameters": record(appendLimit(nil, frameMaxData, 1)),
		"an empty record":               {0},
		"a record too large":            {0x80, 0, 0x40, 0},
		"protocols in band":             record(inBand.append(nil)),
		"small records":                 record(small.append(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := meet(t, Draft02, Config{})
				p.want("params")
				if _, err := p.nc.Write(bytes); err != nil {
					t.Fatal(err)
				}
				p.want("abort 1002")
				_ = p.nc.Close()
				_ = p.ended()
			})
		})
	}
}

func record(b []byte) []byte { return append([]byte{0x40 | byte(len(b)>>8), byte(len(b))}, b...) }

func TestHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft01, Config{HandshakeTimeout: 3 * time.Second})
		p.want("params")
		start := time.Now()
		p.want("abort 0")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("after %v", took)
		}
		if end := p.ended(); !errors.Is(end, ErrHandshakeTimeout) || !errors.Is(end, context.DeadlineExceeded) {
			t.Errorf("ended with %v", end)
		}
	})
}

// The smaller of the two timeouts counts; pings of ours are no sign of life of the peer, its answers are.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft01, Config{KeepAlive: time.Second})
		theirs := goldenParams
		theirs.idleTimeout = 6000
		p.hello(theirs)
		start := time.Now()
		for i := range 5 {
			p.want(fmt.Sprintf("ping %d", i))
			p.send(appendLimit(nil, framePong, uint64(i)))
		}
		answered := time.Now()
		go func() { // reads on, and says no more
			for {
				if _, err := p.in.next(); err != nil {
					return
				}
			}
		}()
		if end := p.ended(); !errors.Is(end, ErrIdleTimeout) {
			t.Errorf("ended with %v", end)
		}
		if took := time.Since(answered); took != 6*time.Second {
			t.Errorf("%v after the last answer, %v after the start", took, time.Since(start))
		}
	})
}

// A ping measures the round trip; those of the peer are answered, several at once by one answer, or by more.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft02, Config{KeepAlive: time.Second})
		p.hello(goldenParams)
		p.want("ping 0")
		time.Sleep(40 * time.Millisecond)
		p.send(appendLimit(nil, framePong, 0))
		if st := p.c.Stats(); st.RTT != 40*time.Millisecond || st.MinRTT != 40*time.Millisecond {
			t.Errorf("%+v", st)
		}
		p.send(appendLimit(nil, framePing, 3), appendLimit(nil, framePing, 4), []byte{framePadding}, appendLimit(nil, framePing, 9))
		var answers []string // one; more if the writer was fast
		for len(answers) == 0 || answers[len(answers)-1] != "pong 9" {
			more, err := p.record()
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, more...)
		}
		if !slices.IsSorted(answers) || answers[0] < "pong 3" {
			t.Errorf("answers %q", answers)
		}
	})
}

// Control frames first, then datagrams, then streams: the most urgent first, from urgency 4 on the oldest, before that in
// turns.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft02, Config{KeepAlive: -1})
		p.hello(goldenParams)
		ctx := t.Context()
		open := func(urgency int, write string) transport.SendStream {
			s, err := p.c.OpenUniStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s.SetPriority(urgency)
			if _, err := s.Write([]byte(write)); err != nil {
				t.Fatal(err)
			}
			return s
		}
		plug := open(0, "plug") // the writer hangs on the pipe with it
		synctest.Wait()
		big := strings.Repeat("b", 8000)
		open(3, big)             // 7
		open(3, big)             // 11
		last := open(7, "x")     // 15
		first := open(7, "xx")   // 19
		open(4, "xxx")           // 23
		later := open(5, "xxxx") // 27
		first.SetPriority(6)
		later.SetPriority(5)
		_ = last.Close()
		if err := p.c.SendDatagram([]byte("d")); err != nil {
			t.Fatal(err)
		}
		plug.Reset(9)
		p.want("stream 3 4")
		p.want("reset 3 code 9 at 4", "datagram d", "stream 7 8000", "stream 11 8000", "stream 23 3", "stream 27 4", "stream 19 2", "stream 15 1 end")
	})
}

// A record is full before the next begins, and nothing exceeds the limits of streams, of the connection and on streams.
func TestSendCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft02, Config{KeepAlive: -1})
		theirs := goldenParams
		theirs.uni, theirs.data, theirs.streamsUni = 20_000, 50_000, 2
		p.hello(theirs)
		results := make(chan error, 3)
		for range 3 {
			go func() {
				s, err := p.c.OpenUniStream(t.Context())
				if err == nil {
					_, err = s.Write(make([]byte, 30_000))
				}
				results <- err
			}()
			synctest.Wait()
		}
		full := maxSend - maxStreamHeader
		p.want(fmt.Sprintf("stream 3 %d", full))
		rest := 20_000 - full
		p.want(fmt.Sprintf("stream 3 %d", rest))
		p.want(fmt.Sprintf("stream 7 %d", full))
		p.want(fmt.Sprintf("stream 7 %d", rest))
		p.send(appendMaxStreamData(nil, 3, 100_000), appendMaxStreamData(nil, 7, 100_000))
		p.want("stream 3 10000") // all the credit of the connection
		p.send(appendLimit(nil, frameMaxData, 40_000), appendLimit(nil, frameMaxData, 1<<20))
		p.want("stream 7 10000")
		p.send(appendLimit(nil, frameMaxStreamsUni, 3))
		p.want(fmt.Sprintf("stream 11 %d", full))
		p.want(fmt.Sprintf("stream 11 %d", rest))
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		p.send(appendStop(nil, 11, 5))
		p.want("reset 11 code 5 at 20000")
		if end, ok := errors.AsType[*transport.StreamError](<-results); !ok || end.Code != 5 || !end.Remote {
			t.Errorf("stopped with %v", end)
		}
	})
}

// Credit is returned when data is read, or never will be; resets are final, whatever they say.
func TestReturnedCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{KeepAlive: -1, MaxStreams: 4, ReceiveWindow: minWindow, StreamReceiveWindow: minWindow}
		p := meet(t, Draft02, cfg)
		p.hello(goldenParams)
		p.send(data(Draft02, 2, strings.Repeat("x", 5000), false))
		s, err := p.c.AcceptUniStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Read(make([]byte, 6000)); n != 5000 || err != nil {
			t.Fatal(n, err)
		}
		p.want("max 13192", "max stream 2 13192")
		p.send(data(Draft02, 2, strings.Repeat("y", 100), false))
		s.Stop(7)
		p.want("stop 2 code 7")
		p.send(data(Draft02, 2, strings.Repeat("z", 100), false)) // under way
		p.send(Draft02.appendReset(nil, 2, 7, 11000))             // 5800 that have not come
		p.want("max streams 1 5", "max 27384")                    // twice the window: it was used up in no time
		p.send(data(Draft02, 2, "late", true), Draft02.appendReset(nil, 2, 0, 0), appendStop(nil, 0, 1))
		p.want("reset 0 code 1 at 0")
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Error("read after stop")
		}
	})
}

// Opening a stream opens those before it; they are accepted in order.
func TestImplicitStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft01, Config{KeepAlive: -1, MaxStreams: 3})
		p.hello(goldenParams)
		p.send(data(Draft01, 2<<2, "third", true))
		p.send(data(Draft01, 0, "first", true))
		for _, want := range []string{"first", "", "third"} {
			s, err := p.c.AcceptStream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				continue
			}
			b := make([]byte, 10)
			if n, _ := s.Read(b); string(b[:n]) != want {
				t.Errorf("%q, want %q", b[:n], want)
			}
		}
	})
}

// How an end looks to us when the peer brings it about.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*peer)
		want func(*transport.SessionError) bool
	}{
		"close": {
			func(p *peer) { p.send(Draft01.closeFrame(frameApplicationClose, 42, "bye")) },
			func(e *transport.SessionError) bool {
				return *e == transport.SessionError{Code: 42, Reason: "bye", Remote: true}
			},
		},
		"the first close counts": {
			func(p *peer) {
				p.send(Draft01.closeFrame(frameApplicationClose, 42, "bye"), Draft01.closeFrame(frameApplicationClose, 1, ""))
			},
			func(e *transport.SessionError) bool { return e.Code == 42 },
		},
		"abort": {
			func(p *peer) { p.send(Draft01.closeFrame(frameConnectionClose, 1002, "why")) },
			func(e *transport.SessionError) bool {
				c, ok := errors.AsType[*ClosedError](e.Transport)
				return ok && e.Remote && c.Code == 1002 && c.Reason == "why"
			},
		},
		"a code that is none": {
			func(p *peer) { p.send(Draft01.closeFrame(frameApplicationClose, 1<<33, "")) },
			func(e *transport.SessionError) bool { return e.Transport != nil && e.Remote },
		},
		"drop": {
			func(p *peer) { _ = p.nc.Close() },
			func(e *transport.SessionError) bool { return errors.Is(e, ErrDropped) && !e.Remote },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := meet(t, Draft01, Config{KeepAlive: -1})
				p.hello(goldenParams)
				test.do(p)
				if end := p.ended(); !test.want(end) {
					t.Errorf("ended with %#v", end)
				}
				_ = p.nc.Close()
				p.c.Wait()
			})
		})
	}
}

// A peer that does not read holds up nobody for long.
func TestCloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, Draft01, Config{KeepAlive: -1})
		p.hello(goldenParams)
		s, err := p.c.OpenUniStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Write([]byte("stuck"))
		start := time.Now()
		p.c.Close(1, "")
		if took := time.Since(start); took != closeWait {
			t.Errorf("took %v", took)
		}
	})
}

// The protocol is the first of the server's list that the client lists too.
func TestAgreeInBand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		done := make(chan *Conn, 1)
		go func() {
			c, err := NewStream(t.Context(), a, "", Config{Protocols: []string{"x", "moq-lite-06", "moql"}})
			if err != nil {
				t.Error(err)
			}
			done <- c
		}()
		client, err := NewStream(t.Context(), b, "", Config{Protocols: []string{"moql", "moq-lite-06"}, Info: transport.Info{Dialed: true}})
		if err != nil {
			t.Fatal(err)
		}
		server := <-done
		if c, s := client.Info().Protocol, server.Info().Protocol; c != "moq-lite-06" || s != "moq-lite-06" {
			t.Errorf("client %q, server %q", c, s)
		}
		go client.Close(0, "")
		server.Close(0, "")
		client.Wait()
	})
}
