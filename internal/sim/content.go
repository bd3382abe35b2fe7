package sim

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

// epoch is when every bubble begins, and when frame 0 of every track is due.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Content is a broadcast with one track of which every byte and every time follows from these fields: all publishers of
// it send the same, whenever they begin.
type Content struct {
	Name     string // of the broadcast
	Track    string
	Info     media.Info
	Interval time.Duration // between frames
	PerGroup int           // frames in a group
	Size     int           // most bytes of a frame
}

// Video is 25 frames a second in groups of a second; what of it is older than a minute may be forgotten.
func Video(name string) Content {
	return Content{
		Name: name, Track: "video", Interval: 40 * time.Millisecond, PerGroup: 25, Size: 400,
		Info: media.Info{Priority: media.DefaultPriority, MaxAge: time.Minute, Timescale: 90_000},
	}
}

// position is where frame n is.
func (c *Content) position(n int64) media.Position {
	per := int64(c.PerGroup)
	return media.Position{Group: uint64(n / per), Frame: uint64(n % per)}
}

// due is when a frame is to be sent.
func (c *Content) due(group, frame uint64) time.Time {
	n := int64(group)*int64(c.PerGroup) + int64(frame)
	return epoch.Add(time.Duration(n) * c.Interval)
}

// first is the first frame that is due at or after now.
func (c *Content) first(now time.Time) int64 {
	return int64((now.Sub(epoch) + c.Interval - 1) / c.Interval)
}

// timestamp is that of a frame, in units of the timescale.
func (c *Content) timestamp(group, frame uint64) uint64 {
	return uint64(c.due(group, frame).Sub(epoch).Microseconds()) * c.Info.Timescale / 1_000_000
}

// payload appends what a frame holds: broadcast, track, group and frame, then as many bytes as these are good for.
func (c *Content) payload(dst []byte, group, frame uint64) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Name + "\x00" + c.Track)) // never fails
	dst = binary.BigEndian.AppendUint64(dst, h.Sum64())
	dst = binary.BigEndian.AppendUint64(dst, group)
	dst = binary.BigEndian.AppendUint64(dst, frame)
	fill := rand.NewPCG(h.Sum64()^group, frame)
	for n := int(fill.Uint64() % uint64(max(1, c.Size-24))); n > 0; n-- {
		dst = append(dst, byte(fill.Uint64()))
	}
	return dst
}

// intact reports whether a frame is the one that it should be. Without timestamps on the wire that of the frame says
// nothing.
func (c *Content) intact(group, frame uint64, f media.Frame, stamped bool) bool {
	if stamped && f.Timestamp != c.timestamp(group, frame) {
		return false
	}
	return bytes.Equal(f.Payload, c.payload(nil, group, frame))
}
