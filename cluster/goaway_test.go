package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/cluster"
)

// TestGoawayWithoutURI (C12): the drained session is kept until the peer closes it; only then is it dialed again.
func TestGoawayWithoutURI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
		defer c.Close()
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		time.Sleep(20 * time.Second)
		n.last().goaway <- ""
		time.Sleep(5 * time.Minute)
		if s := only(t, c); s.State != cluster.StateDraining || s.Since.Sub(n.start) != 20*time.Second || len(s.Sessions) != 1 {
			t.Errorf("status %+v", s)
		}
		if n.count() != 1 || n.last().ended.Load() {
			t.Fatalf("%d dials, session ended %v", n.count(), n.last().ended.Load())
		}
		n.last().end(errGone)
		time.Sleep(500 * time.Millisecond) // half of the first ceiling: the session had lasted
		synctest.Wait()
		if s := only(t, c); n.count() != 2 || s.State != cluster.StateConnected {
			t.Errorf("%d dials, status %+v", n.count(), s)
		}
	})
}

// TestGoawayWithURI (C12): the address is dialed at once, the old session serves on for 10 s at most, and the next
// redial goes to the configured URL.
func TestGoawayWithURI(t *testing.T) {
	for name, closes := range map[string]bool{"peer closes": true, "handover ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
				defer c.Close()
				c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/?jwt=T")})
				time.Sleep(time.Minute)
				old := n.last()
				old.goaway <- "https://hub:444/"
				synctest.Wait()
				want := []string{"https://hub/?jwt=T", "https://hub:444/?jwt=T"}
				if diff := cmp.Diff(want, n.dialed()); diff != "" {
					t.Fatal(diff)
				}
				s := only(t, c)
				if diff := cmp.Diff([]uint64{1, 2}, s.Sessions); diff != "" || s.State != cluster.StateConnected || s.Key != "https://hub/" {
					t.Errorf("%s %+v", diff, s)
				}
				time.Sleep(9 * time.Second)
				if old.ended.Load() {
					t.Error("the old session was cut before its time")
				}
				if closes {
					old.end(errGone)
				} else {
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if diff := cmp.Diff([]uint64{2}, only(t, c).Sessions); diff != "" || !old.ended.Load() {
					t.Errorf("after the handover: %s", diff)
				}
				n.last().end(errGone)
				time.Sleep(time.Second)
				if got := n.last().url; n.count() != 3 || got != "https://hub/?jwt=T" {
					t.Errorf("%d dials, the last to %s", n.count(), got)
				}
			})
		})
	}
}

// TestGoawayRefused (C12): an address that is not followed ends the session; the configured one is dialed after the
// pause.
func TestGoawayRefused(t *testing.T) {
	for _, uri := range []string{"https://other/", "http://hub/", "https://127.0.0.1/", "%", "/x"} {
		t.Run(uri, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
				defer c.Close()
				c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
				synctest.Wait()
				first := n.last()
				first.goaway <- uri
				synctest.Wait()
				if s := only(t, c); !first.ended.Load() || s.State != cluster.StateWaiting || s.LastError == "" || len(s.Sessions) != 0 {
					t.Errorf("ended %v, status %+v", first.ended.Load(), s)
				}
				time.Sleep(time.Second)
				if diff := cmp.Diff([]string{"https://hub/", "https://hub/"}, n.dialed()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestGoawayIgnored: with the policy "ignore" an address is as good as none.
func TestGoawayIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		c := cluster.New(cluster.Config{Dial: n.dial, Redirect: cluster.RedirectIgnore})
		defer c.Close()
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		synctest.Wait()
		n.last().goaway <- "https://hub/other"
		time.Sleep(time.Minute)
		if s := only(t, c); n.count() != 1 || s.State != cluster.StateDraining {
			t.Errorf("%d dials, status %+v", n.count(), s)
		}
	})
}

// TestGoawayToADeadAddress: the old session serves until its time is over, then the configured URL is dialed.
func TestGoawayToADeadAddress(t *testing.T) {
	for name, answer := range map[string]func(context.Context, cluster.Entry, int) error{
		"refuses": func(_ context.Context, _ cluster.Entry, count int) error {
			if count == 2 {
				return errGone
			}
			return nil
		},
		"silent": func(ctx context.Context, e cluster.Entry, count int) error {
			if count == 2 {
				return hang(ctx, e, count)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.answer = answer
				c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
				defer c.Close()
				c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
				synctest.Wait()
				first := n.last()
				first.goaway <- "https://hub/moved"
				time.Sleep(10*time.Second - 1)
				if first.ended.Load() {
					t.Error("the old session was cut before its time")
				}
				time.Sleep(30 * time.Second)
				want := []string{"https://hub/", "https://hub/moved", "https://hub/"}
				if diff := cmp.Diff(want, n.dialed()); diff != "" || !first.ended.Load() {
					t.Errorf("first ended %v: %s", first.ended.Load(), diff)
				}
			})
		})
	}
}

// TestCloseDuringHandover: removal ends both sessions, and Close waits for both.
func TestCloseDuringHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.slowFirst = 300 * time.Millisecond
		c := cluster.New(cluster.Config{Dial: n.dial})
		c.Set(cluster.SourceAPI, []cluster.Entry{entry(t, "https://hub/")})
		synctest.Wait()
		n.last().goaway <- "https://hub/x"
		synctest.Wait()
		c.Set(cluster.SourceAPI, nil)
		c.Close()
		if all := n.sessions(); len(all) != 2 || !all[0].ended.Load() || !all[1].ended.Load() {
			t.Errorf("%d sessions, not all ended", len(all))
		}
	})
}

// TestHandoverKeepsTheCredit: a session that lasted resets the back-off also when it hands over (C10).
func TestHandoverKeepsTheCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = func(_ context.Context, _ cluster.Entry, count int) error {
			if count <= 5 {
				return errGone
			}
			return nil
		}
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
		defer c.Close()
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		time.Sleep(time.Minute) // the ceiling is at 30 s, the session has served half a minute
		n.last().goaway <- "https://hub/x"
		synctest.Wait()
		n.last().end(errGone)
		synctest.Wait()
		if s := only(t, c); s.NextDial.Sub(s.Since) != time.Second/2 {
			t.Errorf("pause %v, want half of the first ceiling", s.NextDial.Sub(s.Since))
		}
	})
}
