package origin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// storm has a peer do something n times as fast as it can, and returns how long that took.
func storm(n int, do func(i int)) time.Duration {
	begin := time.Now()
	for i := range n {
		do(i)
	}
	return time.Since(begin)
}

// Ten seconds' worth of changes come at once, and all others at the rate; what makes a session announce more than it ever
// did, and withdrawals, come as they like. A relay of the cluster may ten times as much, we ourselves what we like.
func TestAnnounceRate(t *testing.T) {
	clusterPeer := func(p *origin.Peer) { p.ClusterPeer = true }
	local := func(p *origin.Peer) { p.Wire = route.WireLocal }
	for name, tt := range map[string]struct {
		opts []option
		do   func(p *peer) func(i int)
		n    int
		want time.Duration
	}{
		"pairs": {nil, pairs, 3001, 20 * time.Second}, // the first is free
		"prices": {nil, func(p *peer) func(int) {
			p.announce("room")
			return func(i int) { p.reprice("room", uint64(i)) }
		}, 3000, 20 * time.Second},
		"pairs of a peer": {[]option{clusterPeer}, pairs, 10_001 + 3000, 3 * time.Second},
		"pairs of ours":   {[]option{local}, pairs, 20_000, 0},
		"growth":          {nil, func(p *peer) func(int) { return func(i int) { p.announce(fmt.Sprint(i)) } }, 20_000, 0},
		"again": {nil, func(p *peer) func(int) {
			for i := range 3000 {
				p.announce(fmt.Sprint(i))
			}
			for i := range 3000 {
				p.withdraw(fmt.Sprint(i))
			}
			return func(i int) { p.announce(fmt.Sprint(i)) }
		}, 3000, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, origin.Config{AnnounceRate: 100}, func(r *rig) {
				p := r.peer("storm", tt.opts...)
				if took := storm(tt.n, tt.do(p)); took != tt.want {
					t.Errorf("took %v, want %v", took, tt.want)
				}
				if slowed := r.o.Counters().Slowed; slowed > 0 != (tt.want > 0) {
					t.Errorf("%d were slowed", slowed)
				}
			})
		})
	}
}

// pairs are an announcement and its withdrawal.
func pairs(p *peer) func(int) {
	return func(int) {
		p.announce("room")
		p.withdraw("room")
	}
}

// reprice changes the price of an announcement.
func (p *peer) reprice(path string, cost uint64) {
	p.r.Helper()
	err := p.Reannounce(p.ads[path], session.Advertisement{
		Prefix: path, Sender: p.Peer().Hop, HasSender: true, Cost: route.Cost{Warm: cost, Cold: cost},
	})
	if err != nil {
		p.r.Errorf("reprice %s: %v", path, err)
	}
}

// A session that pauses may use at once again what it has left unused, up to ten seconds' worth.
func TestAnnounceRateRecovers(t *testing.T) {
	bubble(t, origin.Config{AnnounceRate: 100}, func(r *rig) {
		p := r.peer("storm")
		p.announce("room")
		reprice := func(i int) { p.reprice("room", uint64(i)) }
		storm(1100, reprice)
		time.Sleep(5 * time.Second)
		if took := storm(500, reprice); took != 0 {
			t.Errorf("500 after 5 s took %v", took)
		}
		time.Sleep(time.Hour)
		if took := storm(1100, reprice); took != time.Second {
			t.Errorf("1100 after an hour took %v", took)
		}
	})
}

// While sessions storm, others are told at once of what others do, and each consumer hears of a price that changes all the
// time no more often than the hold allows (R31). Frames go on.
func TestAnnounceStorm(t *testing.T) {
	bubble(t, origin.Config{AnnounceRate: 100}, func(r *rig) {
		one, other, quiet, viewer := r.peer("one"), r.peer("other"), r.peer("quiet"), r.peer("viewer")
		quiet.announce("live")
		v := viewer.view("live", "video")
		up := quiet.only()
		stop := make(chan struct{})
		forever := func(do func(int)) {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					do(i)
				}
			}
		}
		other.announce("priced")
		go forever(pairs(one))
		go forever(func(i int) { other.reprice("priced", uint64(i)) })
		time.Sleep(12 * time.Second) // what may come at once is used up
		feed := viewer.listen("")
		feed.next()
		var updates int
		for i := range 100 {
			name := fmt.Sprint("new", i)
			quiet.announce(name)
			if err := up.send(uint64(i), 0, 0); err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(feed.next())
			if !slices.Contains(got, "+"+name) {
				t.Errorf("of %s the viewer hears %q", name, got)
			}
			if slices.Contains(got, "~priced") {
				updates++
			}
			if got := v.frames(uint64(i)); got != frames(uint64(i), 0, 0) {
				t.Errorf("of group %d the viewer gets %q", i, got)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if updates < 20 || updates > 34 {
			t.Errorf("%d updates in 10 s", updates)
		}
		if n := r.o.Counters().Routes; n > 103 {
			t.Errorf("%d routes", n)
		}
		v.close()
		close(stop)
		time.Sleep(time.Second)
	})
}

// A session that ends need not wait for its turn.
func TestAnnounceRateEnds(t *testing.T) {
	bubble(t, origin.Config{AnnounceRate: 1}, func(r *rig) {
		p := r.peer("storm")
		p.announce("room")
		storm(10, func(i int) { p.reprice("room", uint64(i)) })
		ended := make(chan error)
		begin := time.Now()
		go func() { ended <- p.Reannounce(p.ads["room"], session.Advertisement{Prefix: "room"}) }()
		synctest.Wait()
		p.Close(context.Canceled)
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
