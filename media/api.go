// Package media is the relay's model of content: a broadcast has tracks, a track has groups, a group has frames.
// It keeps each frame once, in the form in which it is written to subscribers, and serves many readers of a
// track from one upstream copy.
package media

import (
	"errors"
	"time"
)

// Limits and defaults (moq-lite 10; F12, F16, F17).
const (
	MaxGroupBytes    = 32 << 20
	MaxGroupFrames   = 8192
	MaxFrameBytes    = 32 << 20
	DefaultMaxAge    = 5 * time.Second
	DefaultPriority  = 127
	DefaultTimescale = 1000
	DatagramRing     = 64
	Linger           = 30 * time.Second
	// Unlimited is a max age without limit.
	Unlimited = time.Duration(1<<63 - 1)
)

// Errors that end a group, a track or a request. The protocols map them to their codes.
var (
	ErrOld           = errors.New("group is too old")
	ErrEvicted       = errors.New("group was evicted")
	ErrGroupTooLarge = errors.New("group is too large")
	ErrFrameTooLarge = errors.New("frame is too large")
	ErrCancelled     = errors.New("cancelled")
	ErrTooFarBehind  = errors.New("frames are no longer held")
	ErrDuplicate     = errors.New("group was delivered already")
	ErrPastEnd       = errors.New("group is past the end of the track")
	ErrBelowStart    = errors.New("group is below the start")
	ErrMalformed     = errors.New("malformed track")
	ErrNotFound      = errors.New("not found")
	ErrBusy          = errors.New("too many fetches")
)

// Order is the stated group ordering of a track; OrderUnspecified matches any.
type Order uint8

// Group orders.
const (
	OrderUnspecified Order = iota
	OrderAscending
	OrderDescending
)

// Info are a track's immutable properties.
type Info struct {
	Priority  uint8
	MaxAge    time.Duration // retention window
	Timescale uint64        // timestamp units per second, never 0
	Order     Order
	// Unstamped is true where the wire carries no timestamps: those of frames are local receive time.
	Unstamped bool
}

// DefaultInfo is what a wire that carries no properties stands for (F24).
func DefaultInfo() Info {
	return Info{Priority: DefaultPriority, MaxAge: DefaultMaxAge, Timescale: DefaultTimescale}
}

// Position is a place in a track; frames count from 0 in their group.
type Position struct{ Group, Frame uint64 }

// Before orders positions lexicographically.
func (p Position) Before(q Position) bool {
	return p.Group < q.Group || p.Group == q.Group && p.Frame < q.Frame
}

// Subscription is what a reader wants, or the aggregate of many.
type Subscription struct {
	Priority uint8
	MaxAge   time.Duration
	Start    *Position // floor; nil = none
	End      *Position // exclusive; nil = none
	// Latest makes a reader without a floor start at the newest group there is (moq-lite 01 to 05). It
	// takes no part in an aggregate.
	Latest bool
}
