//go:build e2e

package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite/message"
)

// TestOneNameManyTimes has a hundred sessions of all versions announce the same name, withdraw it and announce it again in
// one go where the version can, and leave in any order: a viewer hears of its end once, when the last has left.
func TestOneNameManyTimes(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	feed, err := g.viewer.Announced(t.Context(), "room")
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	before := loadOf(t, r)
	var strangers []*stranger
	for i := range 100 {
		s := g.meet(t, carriers[i/6%2], message.Lite01+message.Version(i%6)).greet()
		s.announce("room/one")
		if s.v > message.Lite02 {
			s.send(s.feed, message.Announce{Kind: message.AnnounceEnd, Suffix: "room/one"}, message.Announce{Suffix: "room/one"})
		}
		strangers = append(strangers, s)
	}
	if told := hear(t, feed); len(told) == 0 || told[0].Path != "room/one" || !active(told) {
		t.Fatalf("the viewer hears %+v", told)
	}
	rand.Shuffle(len(strangers), func(i, j int) { strangers[i], strangers[j] = strangers[j], strangers[i] })
	for i, s := range strangers[1:] {
		if i%2 == 0 {
			s.send(s.feed, s.ending())
		}
		s.conn.Close(0, "")
	}
	if told := hear(t, feed); !active(told) {
		t.Errorf("one is left, and the viewer hears %+v", told)
	}
	strangers[0].send(strangers[0].feed, strangers[0].ending())
	if told := hear(t, feed); len(told) != 1 || told[0].Active {
		t.Errorf("nobody is left, and the viewer hears %+v", told)
	}
	strangers[0].wantAlive()
	strangers[0].conn.Close(0, "")
	wantLoad(t, r, before, patience)
	check()
}

// ending withdraws what a stranger has announced last.
func (s *stranger) ending() message.Announce {
	m := message.Announce{Kind: message.AnnounceEnd, Suffix: "room/one"}
	if s.v.HasAnnounceIDs() {
		m.ID = 1
	}
	return m
}

// hear is what a viewer is told until nothing comes for a second.
func hear(t *testing.T, feed *client.Announcements) (told []client.Announcement) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		a, err := feed.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return told
		}
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, a)
	}
}

// active reports whether no announcement is a withdrawal.
func active(told []client.Announcement) bool {
	return !slices.ContainsFunc(told, func(a client.Announcement) bool { return !a.Active })
}
