// Package session says what a MoQ session looks like to its host, whatever protocol it speaks: the
// relay's origin or the client library on one side, package lite (later moqt) on the other. Types and
// interfaces only.
package session

import (
	"context"
	"errors"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// Errors of requests, mapped to wire codes by each protocol.
var (
	ErrUnroutable   = errors.New("no route covers the path")
	ErrNotFound     = media.ErrNotFound
	ErrUnauthorized = errors.New("unauthorized")
	ErrGoingAway    = errors.New("going away")
	ErrUnsupported  = errors.New("no compatible source")
	ErrNoCapacity   = errors.New("limit reached")
	ErrTimeout      = errors.New("not answered in time")
	// ErrViolation wraps what a peer must not do; the session is closed with the protocol's code for it.
	ErrViolation = errors.New("protocol violation")
)

// Advertisement is one prefix that the peer offers, as received, before route applies its rules.
type Advertisement struct {
	// Prefix is normalized and relative to the session's root.
	Prefix string
	// Hops as on the wire, oldest first: zeros for lite-03, the full list for lite-04, without the sender for
	// lite-05 and later, empty where the wire has none.
	Hops []route.Hop
	// Sender is the publisher's own id where the wire states it apart from the list (ANNOUNCE_OK); see HasSender.
	Sender    route.Hop
	HasSender bool
	// Cost as on the wire; ignored where the session's wire carries none.
	Cost route.Cost
}

// AdvertID names an advertisement of one session for as long as it lives. The protocol chooses it.
type AdvertID uint64

// Handler is what a session asks of its host on the peer's behalf. Paths are normalized and relative to
// the session's root; authorization is the host's. Methods may be called concurrently except as said.
type Handler interface {
	// Announce, Reannounce and Withdraw report the peer's advertisements. Calls for one stream come in
	// order. Withdraw with explicit false means that the stream ended without saying so. An error wrapping
	// ErrViolation closes the session; ErrNoCapacity too. Announce and Reannounce may block for as long as the session is
	// to be slowed down, or until it ends.
	Announce(id AdvertID, ad Advertisement) error
	Reannounce(id AdvertID, ad Advertisement) error
	Withdraw(id AdvertID, explicit bool)
	// Goaway reports that the peer wants to leave; uri may be empty.
	Goaway(uri string)

	// Listen opens the feed of one announce stream below prefix. exclude is the subscriber's hop where
	// the request states it (lite-04, 05), else 0.
	Listen(prefix string, exclude route.Hop) (Feed, error)
	// TrackInfo answers with the properties of a track; it may ask upstream and blocks until ctx ends.
	TrackInfo(ctx context.Context, path, track string) (media.Info, error)
	// Subscribe opens a reader. It returns without waiting for a source to accept unless it must know the
	// properties; if the source refuses, the reader ends with the error. waker is told when the reader has
	// something to do (see media.Reader). The caller closes the reader.
	Subscribe(ctx context.Context, path, track string, sub media.Subscription, waker media.Waker) (Reader, error)
	// Fetch answers with a reader of one group from frame on, cached or asked upstream. It returns once a
	// source has accepted.
	Fetch(ctx context.Context, req FetchRequest) (*media.GroupReader, error)
}

// Reader is a subscription of the peer at the host.
type Reader interface {
	// Media is the reader of the cached track.
	Media() *media.Reader
	// Update replaces the preferences.
	Update(media.Subscription)
	// Close ends the subscription; the last one of a track cancels the upstream at once.
	Close()
}

// FetchRequest names part of a group.
type FetchRequest struct {
	Path, Track string
	Priority    uint8
	Group       uint64
	Frame       uint64  // first
	End         *uint64 // one past the last; nil = to the end
}

// Feed delivers what one announce stream must say. Updates of names that the consumer has not taken yet are
// merged, so a slow one costs at most one entry per name.
type Feed interface {
	// Next waits for changes. The first call returns at once with the complete initial set, which may be
	// empty. It fails when ctx ends or the feed is closed.
	Next(ctx context.Context) ([]Update, error)
	Close()
}

// UpdateKind says what an Update does.
type UpdateKind uint8

// Kinds of update.
const (
	UpdateNew    UpdateKind = iota // announce
	UpdateChange                   // in place; never on wires without it
	UpdateGone                     // retract
)

// Update is one message to an announce stream.
type Update struct {
	Kind UpdateKind
	// Name is relative to the prefix of the stream.
	Name string
	// Hops as stored, without our own id.
	Hops []route.Hop
	Cost route.Cost
}

// Upstream is a live session seen as a source. Paths are relative to the session's root.
type Upstream interface {
	// TrackInfo asks the peer for a track's properties. On wires without such a request it answers with
	// media.DefaultInfo at once.
	TrackInfo(ctx context.Context, path, track string) (media.Info, error)
	// Subscribe asks for a track and feeds copy until the subscription ends. It returns once the request is
	// written; a refusal comes through Subscription.Done.
	Subscribe(ctx context.Context, req SubscribeRequest, copy *media.Copy) (Subscription, error)
	// Fetch asks for one group and writes it to w, whose first frame is req.Frame where Caps.FrameBounds, else frame 0
	// (known frames are dropped by w). accepted is called once, at the first byte or FIN. It returns when
	// the group is complete or has failed; w is not finished or aborted by it.
	Fetch(ctx context.Context, req FetchRequest, w *media.GroupWriter, accepted func()) error
	Caps() Caps
}

// Heard is what an Upstream may be too: one that can tell whether anything at all arrives from the peer.
type Heard interface {
	// Heard counts what has arrived, such as packets. It does not block.
	Heard() uint64
}

// SubscribeRequest names an upstream subscription.
type SubscribeRequest struct {
	Path, Track string
	media.Subscription
	// Info as answered by TrackInfo.
	Info media.Info
}

// Caps says what a session's version can carry upstream.
type Caps struct {
	TrackInfo   bool // has a request for properties (05+)
	Update      bool // SUBSCRIBE_UPDATE (03+)
	Fetch       bool // 05+
	FrameBounds bool // starts and ends inside a group (06)
	Floor       bool // an absent start means "no floor", not "the latest group" (06)
	Range       bool // carries start and end at all (03+)
	Timestamps  bool // 05+
}

// Subscription is one upstream subscription.
type Subscription interface {
	Update(media.Subscription) error
	// Cancel unsubscribes and returns at once.
	Cancel()
	// Done is closed when the subscription is over; Err then tells why: nil after a clean end of the
	// track, ErrCancelled of media after Cancel.
	Done() <-chan struct{}
	Err() error
}
