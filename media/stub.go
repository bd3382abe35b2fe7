package media

import (
	"io"
	"time"
)

// This file holds the signatures of the package while the bodies are being written.

// CacheConfig configures a Cache. The zero value is usable.
type CacheConfig struct {
	// Capacity in bytes above which writing tracks drop their least recently used groups; 0 = unbounded.
	Capacity int64
	// Idle is how long a group stays that nobody reads or writes; 0 = 30 s.
	Idle time.Duration
	// MaxAge caps every track's retention window; 0 = no cap.
	MaxAge time.Duration
}

// CacheStats is a snapshot of a Cache.
type CacheStats struct {
	Bytes    int64 // payload plus a fixed overhead per group
	Capacity int64 // 0 = unbounded
	Groups   int
	Tracks   int
	Evicted  uint64 // groups evicted since the start, idle or under pressure
}

// Cache is the pool of cached groups that all tracks of a relay share.
type Cache struct{}

// NewCache makes a cache. It owns no goroutine; the owner calls Sweep.
func NewCache(cfg CacheConfig) *Cache { return &Cache{} }

// Resize changes the capacity; 0 = unbounded.
func (c *Cache) Resize(capacity int64) {}

// Sweep tells the time and does what is due: idle groups go (F13), groups that nobody delivers any more are
// given up (F33). Call it every 250 ms or so; idle groups are looked for at most once per second.
func (c *Cache) Sweep(now time.Time) {}

// Stats returns a snapshot; it does not block.
func (c *Cache) Stats() CacheStats { return CacheStats{} }

// NewTrack makes an empty track. Its retention window is info.MaxAge capped by the cache's MaxAge (F12).
func (c *Cache) NewTrack(info Info) *Track { return &Track{info: info} }

// Track is one logical track: what its copies delivered, and the readers of it. All methods may be called
// concurrently.
type Track struct{ info Info }

// Info returns the properties; MaxAge is the retention window after the cap.
func (t *Track) Info() Info { return t.info }

// NewCopy adds an upstream subscription that feeds the track. Make the next copy before closing a dead one: as
// long as a copy may deliver the rest of a group, its readers keep waiting (F33). w may be nil; it is woken when
// the copy has named its start or its end, and when its last open group has ended.
func (t *Track) NewCopy(w Waker) *Copy { return &Copy{} }

// NewReader adds a reader; the readers's owner closes it. w is woken (outside of locks) when Next, NextDatagram,
// Start or End may have something new to say, and when a group the reader holds has become too old.
func (t *Track) NewReader(sub Subscription, w Waker) *Reader { return &Reader{} }

// Lacking returns where a new copy starts: the first frame that the readers lack (F27); nil = nothing was
// delivered yet, ask for the aggregate as it is. Copy.Ask includes it.
func (t *Track) Lacking(agg Subscription) *Position { return nil }

// Oldest and Newest return the lowest and the highest cached group.
func (t *Track) Oldest() (uint64, bool) { return 0, false }
func (t *Track) Newest() (uint64, bool) { return 0, false }

// End says that the track ends before group (exclusive; 0 = it has none). Readers get what is below, then io.EOF:
// as soon as no copy is left or every group below the end is complete.
func (t *Track) End(group uint64) {}

// Close ends the track for all readers with err, at once, and frees what is cached. Complete groups that a reader
// holds can be read to their end.
func (t *Track) Close(err error) {}

// Fetch returns a reader of group seq from frame on, exempt from age (F10). It comes from the cache if a cached
// group holds everything from there on and is complete or being fed, or from a running fetch whose start is not
// above frame (F41). Else the second result is not nil: the caller must run that Fetch, and the reader, as those
// of later requests that join, gets what it brings.
func (t *Track) Fetch(seq, frame uint64) (*GroupReader, *Fetch) { return &GroupReader{}, nil }

// Fetch is one upstream FETCH of one group, which has one owner.
type Fetch struct{}

// Group and Frame say what to ask: Frame is the first frame not received yet, so that asking again after a
// failure continues (X44).
func (f *Fetch) Group() uint64 { return 0 }
func (f *Fetch) Frame() uint64 { return 0 }

// Writer returns a writer for one attempt, whose first frame will be first (0 where the wire has no frame
// bounds; known frames are dropped). GroupWriter.Finish completes the fetch; GroupWriter.Abort ends only the attempt.
func (f *Fetch) Writer(first uint64) *GroupWriter { return &GroupWriter{} }

// Unwanted is closed when the last reader has gone before the fetch was complete.
func (f *Fetch) Unwanted() <-chan struct{} { return nil }

// Close ends the fetch; readers get err unless it is complete already. The owner must call it.
func (f *Fetch) Close(err error) {}

// Copy is one upstream subscription of a track. Its methods may be called concurrently.
type Copy struct{}

// Ask turns the aggregate into what this copy asks for upstream. The first call fixes the copy's floor: the first
// frame that the readers lack, rounded to frame 0 where the cache lacks the head of that group (F6, F27). Later
// calls apply the floor to the new aggregate (F27a); where that lowers the start, a start the copy has declared is
// void. An end inside a group becomes the end of that group (F6). Equal aggregates give equal results.
func (c *Copy) Ask(agg Subscription) Subscription { return agg }

// Start is SUBSCRIBE_START: groups below will not come.
func (c *Copy) Start(group uint64) {}

// End is SUBSCRIBE_END: groups at or above (exclusive end) will not come. It ends nothing by itself, see Track.End.
func (c *Copy) End(group uint64) {}

// Limit takes no new groups at or above group from this copy (F28, F34); nil takes the limit back.
func (c *Copy) Limit(group *uint64) {}

// Drop is SUBSCRIBE_DROP: groups first to last (inclusive) will not come.
func (c *Copy) Drop(first, last uint64) {}

// Group begins a group stream whose first frame is frame. Errors: ErrDuplicate (this copy sent that group already,
// or it is complete and nobody wants it), ErrPastEnd, ErrBelowStart, ErrOld (beyond the retention window),
// ErrCancelled (the copy is closed). The caller stops the stream then; no error concerns other streams.
func (c *Copy) Group(seq, frame uint64) (*GroupWriter, error) { return &GroupWriter{}, nil }

// Datagram takes a single-frame group that came as a datagram (F17). It copies payload.
func (c *Copy) Datagram(seq, ts uint64, payload []byte) {}

// State returns what is known of the copy.
func (c *Copy) State() CopyState { return CopyState{} }

// Close ends the copy: session or subscription over. Finished groups stay readable; open ones stay as the head of a
// continuation (F15, F16) as long as another copy may deliver the rest, or none is there yet. Its open writers
// return ErrCancelled from then on. It may be called twice.
func (c *Copy) Close() {}

// CopyState is a snapshot of a Copy.
type CopyState struct {
	Started bool   // it declared its start, or a group arrived
	Start   uint64 // lowest group that may come
	Ended   bool   // it declared its end
	End     uint64
	Begun   bool   // a group or datagram arrived
	Newest  uint64 // highest one
	Open    int    // group streams open
	Limit   uint64 // just after the newest open group: the end of an old copy (F28)
}

// GroupWriter writes the frames of one group stream of one copy. It has one user, except for Abort.
type GroupWriter struct{}

// WriteFrame takes one whole frame and copies payload; ts is absolute, in timescale units. Frames that the group
// has already are dropped, frames that are not in line yet are held back (F30). After an error nothing more is
// taken and the caller stops the stream: ErrMalformed (timestamp), ErrFrameTooLarge, ErrGroupTooLarge (the group
// fails), ErrOld and ErrEvicted (nobody wants it any more), ErrCancelled, ErrDuplicate (complete by another copy).
func (w *GroupWriter) WriteFrame(ts uint64, payload []byte) error { return nil }

// Finish says that the stream ended cleanly after the last frame written (F32).
func (w *GroupWriter) Finish() {}

// Abort says that the stream ended otherwise: reset by the peer, malformed, cut off. err reaches readers if nobody
// else delivers the rest (F33). After Finish or an error it does nothing.
func (w *GroupWriter) Abort(err error) {}

// Reader is one subscription's view of a track. One goroutine uses Next and NextDatagram; Update and Close may be
// called by others.
type Reader struct{}

// Update replaces the preferences. A lowered start exposes groups that were not handed out yet.
func (r *Reader) Update(sub Subscription) {}

// Start returns the group that SUBSCRIBE_START must say, as soon as it is known: a stated start as stated, else
// the lowest group that could be served at that moment or, if lower, what the copy declared (F5). It is final.
func (r *Reader) Start() (uint64, bool) { return 0, false }

// End returns the exclusive end of the track once that is final (SUBSCRIBE_END).
func (r *Reader) End() (uint64, bool) { return 0, false }

// Next returns the newest servable group not handed out yet, without blocking; nil, nil = nothing now, wait to be
// woken. Then io.EOF after a clean end, when all was handed out, or the error of the track. The caller closes the
// group.
func (r *Reader) Next() (*GroupReader, error) { return nil, io.EOF }

// NextDatagram returns the next datagram, without blocking.
func (r *Reader) NextDatagram() (Datagram, bool) { return Datagram{}, false }

// Close ends the reader. Groups it handed out stay valid until they are closed themselves.
func (r *Reader) Close() {}

// Datagram is a group of a single frame that travels as a datagram. Payload is shared: read only.
type Datagram struct {
	Group     uint64
	Timestamp uint64
	Payload   []byte
}

// GroupReader reads one group for one subscription or fetch. One goroutine uses Next and ReadFrame; TooOld may be
// called by others.
type GroupReader struct{}

// Sequence is the group number.
func (g *GroupReader) Sequence() uint64 { return 0 }

// FirstFrame is the index of the first frame that Next returns.
func (g *GroupReader) FirstFrame() uint64 { return 0 }

// Limit ends the reader cleanly before frame end; call it before Next.
func (g *GroupReader) Limit(end uint64) {}

// Next waits until there are whole frames and returns as many contiguous ones as lie in one chunk (about 64 KiB, or
// one larger frame). io.EOF after the last one of a complete group; ErrOld, ErrEvicted and others if the rest will
// not come; ErrCancelled if w is cancelled.
func (g *GroupReader) Next(w *Waiter) (Batch, error) { return Batch{}, io.EOF }

// ReadFrame is Next for one frame.
func (g *GroupReader) ReadFrame(w *Waiter) (Frame, error) { return Frame{}, io.EOF }

// TooOld says whether the group is too old for its reader now (F9); it stays cheap with thousands of groups. A
// fetch is never too old.
func (g *GroupReader) TooOld() bool { return false }

// Close frees the reader's hold on the group. It may be called twice.
func (g *GroupReader) Close() {}

// Frame is one frame. Payload is shared: read only.
type Frame struct {
	Timestamp uint64 // absolute, timescale units
	Payload   []byte
}

// Batch is one or more contiguous frames of a group. Its bytes are shared with other readers: read only. They stay
// valid as long as the batch is referenced.
type Batch struct{}

// Frames is how many frames there are.
func (b *Batch) Frames() int { return 0 }

// PayloadBytes is the sum of their sizes without framing.
func (b *Batch) PayloadBytes() int { return 0 }

// Bytes returns the frames as moq-lite 05 and 06 write them (delta, size, payload), without copying, except for the
// first batch of a reader that starts inside a group, whose first timestamp must be made absolute.
func (b *Batch) Bytes() []byte { return nil }

// Legacy returns the frames as moq-lite 01 to 04 write them (size, payload): without copying if there is one frame,
// else in *scratch, which is reused and grown.
func (b *Batch) Legacy(scratch *[]byte) []byte { return nil }

// Frame returns frame i of the batch.
func (b *Batch) Frame(i int) Frame { return Frame{} }

// Waiter lets one goroutine block in GroupReader.Next. It may be reused for one group after the other.
type Waiter struct{}

// NewWaiter makes a waiter.
func NewWaiter() *Waiter { return &Waiter{} }

// Cancel ends the current and all later waits with ErrCancelled until Reset. Any goroutine may call it.
func (w *Waiter) Cancel() {}

// Reset makes a cancelled waiter usable again. The goroutine that waits calls it.
func (w *Waiter) Reset() {}

// Waker is told, outside of any lock, that there is something to do. Wake must not block; it may be called by any
// goroutine, more often than needed, and once more after Close.
type Waker interface{ Wake() }

// Aggregate combines what readers want into what their copy asks for (F3 to F5): highest priority, longest max age
// clamped to the retention window, lowest start, highest end; a reader without a bound removes it. Readers whose range is empty take
// no part; false = nothing to ask. Pure.
func Aggregate(subs []Subscription, retention time.Duration) (Subscription, bool) {
	return Subscription{}, false
}
