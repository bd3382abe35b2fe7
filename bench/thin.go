package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

// Versions are what viewers can speak, preferred first.
var Versions = []message.Version{message.Lite06, message.Lite05}

// errVersion means that the relay and the generator have no version in common.
var errVersion = errors.New("no common version: moq-lite-05 or 06 is needed")

// tokens are the names of versions in negotiation.
func tokens(versions []message.Version) []string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v.Token()
	}
	return names
}

// thin is a session that speaks no more of the protocol than a viewer has to: SETUP, and one stream for each thing that it
// asks for. What the relay asks is left alone.
type thin struct {
	conn transport.Conn
	v    message.Version
	next uint64 // id of a subscription
}

// begin sends SETUP. u is the relay's URL: its path and query go into SETUP where the carrier has none.
func begin(ctx context.Context, conn transport.Conn, u *url.URL) (*thin, error) {
	info := conn.Info()
	t := &thin{conn: conn}
	for _, v := range Versions {
		if v.Token() == info.Protocol {
			t.v = v
		}
	}
	if t.v == 0 {
		return nil, errVersion
	}
	setup := message.Setup{Role: message.RoleSubscriber}
	if info.URL == nil && u != nil {
		setup.Path, setup.HasPath = u.RequestURI(), true
	}
	hello, err := setup.Append(message.UniSetup.Append(nil), t.v)
	if err != nil {
		return nil, err
	}
	uni, err := conn.OpenUniStream(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := uni.Write(hello); err != nil {
		return nil, err
	}
	return t, uni.Close()
}

// subscription is what a viewer asks for.
type subscription struct {
	broadcast, track string
	maxAge           time.Duration
}

// subscribe asks for a track. The answers come on the stream.
func (t *thin) subscribe(ctx context.Context, s subscription) (transport.Stream, error) {
	ask := message.Subscribe{ID: t.next, Broadcast: s.broadcast, Track: s.track}
	ask.Priority, ask.MaxAge = 127, s.maxAge
	t.next++
	return t.request(ctx, message.StreamSubscribe, ask)
}

// request opens a stream with one message.
func (t *thin) request(ctx context.Context, typ message.StreamType, m message.Encoder) (transport.Stream, error) {
	b, err := m.Append(typ.Append(nil), t.v)
	if err != nil {
		return nil, err
	}
	st, err := t.conn.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := st.Write(b); err != nil {
		return nil, err
	}
	return st, nil
}

// refused reads the answers to a subscription until it ends, and returns how.
func (t *thin) refused(st transport.Stream) error {
	r := bufio.NewReaderSize(st, 64)
	for {
		if _, err := message.ReadResponse(r, t.v); err != nil {
			return fmt.Errorf("subscription: %w", err)
		}
	}
}

// announced asks for what is announced below prefix and calls tell for each broadcast that comes, with its name below the
// prefix, or goes. It returns when the stream ends, or tell wants no more.
func (t *thin) announced(ctx context.Context, prefix string, tell func(suffix string, active bool) bool) error {
	st, err := t.request(ctx, message.StreamAnnounce, message.AnnounceRequest{Prefix: prefix})
	if err != nil {
		return err
	}
	defer func() {
		st.Stop(0)
		_ = st.Close() // the stream may have ended
	}()
	r := bufio.NewReader(st)
	var ok message.AnnounceOK
	if err := message.Read(r, t.v, &ok); err != nil {
		return err
	}
	return t.announcements(r, tell)
}

// maxNames bounds what a relay can make a watcher remember.
const maxNames = 1 << 21

var errNames = errors.New("the relay announces more than a watcher can remember")

// announcements reads what follows ANNOUNCE_OK.
func (t *thin) announcements(r wire.StreamReader, tell func(string, bool) bool) error {
	names := make(map[uint64]string) // by announce id
	active := make(map[string]bool)
	var next uint64
	for {
		a, err := message.ReadAnnounce(r, t.v)
		if err != nil {
			return err
		}
		switch a.Kind {
		case message.AnnounceStart:
			if t.v.HasAnnounceIDs() {
				names[next] = a.Suffix
				next++
			}
			if active[a.Suffix] {
				continue // a new way to the same broadcast
			}
			if len(active) >= maxNames {
				return errNames
			}
			active[a.Suffix] = true
		case message.AnnounceEnd:
			if t.v.HasAnnounceIDs() {
				a.Suffix = names[a.ID]
				delete(names, a.ID)
			}
			delete(active, a.Suffix)
		default:
			continue
		}
		if !tell(a.Suffix, a.Kind == message.AnnounceStart) {
			return nil
		}
	}
}

// await returns when a broadcast is announced, or with the cause of ctx.
func (t *thin) await(ctx context.Context, name string) error {
	seen := false
	stop := context.AfterFunc(ctx, func() { t.conn.Close(0, "") })
	defer stop()
	err := t.announced(ctx, name, func(_ string, active bool) bool {
		seen = active
		return !active
	})
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err == nil && !seen:
		return errNoMore
	}
	return err
}

var errNoMore = errors.New("the relay announces nothing more")
