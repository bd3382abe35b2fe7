package origin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// change is "+name", "~name" or "-name"; a digit after a colon is the content.
func update(text string) session.Update {
	u := session.Update{Kind: session.UpdateNew}
	switch text[0] {
	case '~':
		u.Kind = session.UpdateChange
	case '-':
		u.Kind = session.UpdateGone
	}
	name, content, _ := strings.Cut(text[1:], ":")
	u.Name = name
	if content != "" {
		u.Hops = []route.Hop{route.Hop(content[0] - '0')}
		u.Cost.Warm = uint64(content[0] - '0')
	}
	return u
}

func updates(us []session.Update) string {
	var out []string
	for _, u := range us {
		s := []string{"+", "~", "-"}[u.Kind] + u.Name
		if len(u.Hops) > 0 {
			s += fmt.Sprintf(":%d", u.Hops[0])
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestPendingMerges(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"+a:1", "+a:1"},
		{"+a:1 -a", ""},
		{"+a:1 ~a:2", "+a:2"},
		{"+a:1 ~a:2 -a", ""},
		{"+a:1 -a +a:2", "+a:2"},
		{"~a:1 ~a:2", "~a:2"},
		{"~a:1 -a", "-a"},
		{"-a +a:1", "-a +a:1"},
		{"-a +a:1 ~a:2", "-a +a:2"},
		{"-a +a:1 -a", "-a"},
		{"-a +a:1 -a +a:3", "-a +a:3"},
		{"+a:1 +b:1 +c:1 -b ~a:2", "+a:2 +c:1"},
		{"+a:1 +b:1 -a", "+b:1"},
		{"+a:1 +b:1 -b +b:2", "+a:1 +b:2"},
	} {
		var p pending
		for text := range strings.FieldsSeq(c.in) {
			p.put(update(text))
		}
		if got := updates(p.take()); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
		if got := p.take(); got != nil {
			t.Errorf("%q: left %q", c.in, updates(got))
		}
	}
}

// A consumer that takes whenever it likes ends up with what one has that takes every change, and holds a name whenever
// it is told that the name changed or went.
func TestPendingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pending
		now, held := map[string]uint64{}, map[string]uint64{}
		take := func() {
			for _, u := range p.take() {
				_, has := held[u.Name]
				if has != (u.Kind != session.UpdateNew) {
					t.Fatalf("%s of a name that the consumer holds: %v", updates([]session.Update{u}), has)
				}
				if held[u.Name] = u.Cost.Warm; u.Kind == session.UpdateGone {
					delete(held, u.Name)
				}
			}
			if fmt.Sprint(held) != fmt.Sprint(now) {
				t.Fatalf("the consumer holds %v, there is %v", held, now)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			u := session.Update{Name: name}
			_, has := now[name]
			switch {
			case !has:
				u.Kind = session.UpdateNew
			case rapid.Bool().Draw(t, "goes"):
				u.Kind = session.UpdateGone
			default:
				u.Kind = session.UpdateChange
			}
			if u.Kind == session.UpdateGone {
				delete(now, name)
			} else {
				u.Cost.Warm = rapid.Uint64Range(1, 9).Draw(t, "cost")
				now[name] = u.Cost.Warm
			}
			p.put(u)
			if len(p.names) > 3 {
				t.Fatalf("%d entries for 3 names", len(p.names))
			}
			if rapid.Bool().Draw(t, "take") {
				take()
			}
		}
		take()
	})
}

func TestFeedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		detached := 0
		f := newFeed(func() { detached++ })
		if us, err := f.Next(context.Background()); us != nil || err != nil {
			t.Errorf("the initial set: %v %v", us, err)
		}
		got := make(chan string)
		go func() {
			us, err := f.Next(context.Background())
			got <- fmt.Sprint(updates(us), err)
		}()
		synctest.Wait()
		f.put(update("+a"))
		if s := <-got; s != "+a<nil>" {
			t.Errorf("got %q", s)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			_, err := f.Next(ctx)
			got <- err.Error()
		}()
		synctest.Wait()
		cancel(errTest)
		if s := <-got; s != errTest.Error() {
			t.Errorf("got %q", s)
		}
		go func() {
			_, err := f.Next(context.Background())
			got <- err.Error()
		}()
		synctest.Wait()
		f.Close()
		f.Close()
		if s := <-got; s != net.ErrClosed.Error() || detached != 1 {
			t.Errorf("got %q, detached %d times", s, detached)
		}
		f.put(update("+b"))
		if _, err := f.Next(context.Background()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
