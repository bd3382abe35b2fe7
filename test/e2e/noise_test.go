//go:build e2e

package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
)

// TestNoise has strangers say all kinds of things for a few seconds: messages of all versions, whole, cut and damaged, on
// streams of all types and in datagrams, as requests and as answers. The relay and its other guests bear it.
func TestNoise(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	words := vocabulary(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var strangers errgroup.Group
	for i := range uint64(8) {
		n := &noise{words: words, rand: rand.New(rand.NewPCG(i, 0))}
		strangers.Go(func() error {
			for ctx.Err() == nil {
				v := message.Lite01 + message.Version(n.rand.IntN(6))
				conn, err := g.dialers[v].Dial(ctx, target(t, r, carriers[n.rand.IntN(2)]))
				if err != nil {
					return unless(ctx, err)
				}
				n.talk(ctx, conn, v)
				conn.Close(uint32(n.rand.IntN(100)), "")
			}
			return nil
		})
	}
	if err := strangers.Wait(); err != nil {
		t.Errorf("the relay cannot be reached: %v", err)
	}
	newcomer(t, g)
	wantLoad(t, r, before, 2*patience)
	check()
}

// unless is err, unless it comes from the end of ctx.
func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// vocabulary is every message that there is a vector of.
func vocabulary(t *testing.T) (words [][]byte) {
	t.Helper()
	b, err := os.ReadFile("../../lite/message/testdata/moq-lite.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors, Invalid []struct{ Hex string } }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, vec := range append(file.Vectors, file.Invalid...) {
		raw, err := hex.DecodeString(vec.Hex)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, raw)
	}
	if len(words) == 0 {
		t.Fatal("no vectors")
	}
	return words
}

// noise is one stranger's manner of speaking.
type noise struct {
	words [][]byte
	rand  *rand.Rand
}

// speak is a few words, some of them mangled.
func (n *noise) speak() (b []byte) {
	for range 1 + n.rand.IntN(4) {
		word := append([]byte(nil), n.words[n.rand.IntN(len(n.words))]...)
		switch n.rand.IntN(6) {
		case 0:
			word = word[:n.rand.IntN(len(word)+1)]
		case 1:
			if len(word) > 0 {
				word[n.rand.IntN(len(word))] ^= 1 << n.rand.IntN(8)
			}
		case 2:
			word = append(word, byte(n.rand.Uint32()))
		}
		b = append(b, word...)
	}
	return b
}

// talk uses a connection for a moment.
func (n *noise) talk(ctx context.Context, conn transport.Conn, v message.Version) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(50+n.rand.IntN(300))*time.Millisecond)
	defer cancel()
	if n.rand.IntN(8) > 0 {
		n.greet(ctx, conn, v)
	}
	answers := make(chan struct{})
	answerer := &noise{words: n.words, rand: rand.New(rand.NewPCG(n.rand.Uint64(), 1))}
	go func() {
		defer close(answers)
		for {
			st, err := conn.AcceptStream(ctx)
			if err != nil {
				return
			}
			_, _ = st.Write(answerer.speak())
			answerer.end(st, st)
		}
	}()
	for ctx.Err() == nil && conn.Context().Err() == nil {
		n.utter(ctx, conn)
		time.Sleep(time.Duration(n.rand.IntN(3)) * time.Millisecond)
	}
	cancel()
	<-answers
}

// greet does the handshake.
func (n *noise) greet(ctx context.Context, conn transport.Conn, v message.Version) {
	switch {
	case v.HasInbandSetup():
		if st, err := conn.OpenStream(ctx); err == nil {
			b, _ := message.ClientSetup{Versions: []uint64{v.Code()}}.Append(nil, v)
			_, _ = st.Write(b)
		}
	case v.HasSetup():
		if st, err := conn.OpenUniStream(ctx); err == nil {
			b, _ := message.Setup{Hop: 7}.Append(message.UniSetup.Append(nil), v)
			_, _ = st.Write(b)
			_ = st.Close()
		}
	}
}

// utter opens a stream, or sends a datagram.
func (n *noise) utter(ctx context.Context, conn transport.Conn) {
	switch n.rand.IntN(4) {
	case 0:
		_ = conn.SendDatagram(n.speak())
	case 1:
		if st, err := conn.OpenUniStream(ctx); err == nil {
			_, _ = st.Write(append([]byte{byte(n.rand.IntN(3))}, n.speak()...))
			n.end(st, nil)
		}
	default:
		if st, err := conn.OpenStream(ctx); err == nil {
			_, _ = st.Write(append([]byte{byte(n.rand.IntN(8))}, n.speak()...))
			n.end(st, st)
		}
	}
}

// end ends a stream in some way, or leaves it.
func (n *noise) end(out transport.SendStream, in transport.ReceiveStream) {
	switch n.rand.IntN(4) {
	case 0:
		_ = out.Close()
	case 1:
		out.Reset(uint64(n.rand.IntN(100)))
	}
	if in != nil && n.rand.IntN(2) == 0 {
		in.Stop(uint64(n.rand.IntN(100)))
	}
}
