package message

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/wire"
)

// Limits of moq-lite 10, checked when encoding and when decoding.
const (
	MaxBody        = 64 << 20 // bytes of a message without its length
	MaxSetupBody   = 65536    // bytes of SETUP, CLIENT_SETUP and SERVER_SETUP
	MaxSetupParams = 64       // parameters of SETUP, CLIENT_SETUP and SERVER_SETUP
	MaxHops        = 32       // hops of one chain
	MaxURI         = 8192     // bytes of the uri of GOAWAY
	MaxInit        = 1 << 20  // suffixes of ANNOUNCE_INIT: a limit of our own, as the list is held in memory
)

// Errors of this package, beside those of wire and paths. Decoders wrap them in *Error.
var (
	ErrVersion         = errors.New("not defined on this version")
	ErrType            = errors.New("unknown type")
	ErrStatus          = errors.New("unknown announcement status")
	ErrTooManyHops     = errors.New("more than 32 hops")
	ErrRepeatedHop     = errors.New("hop occurs twice")
	ErrTooManySuffixes = errors.New("too many suffixes")
	ErrWildcard        = errors.New("a wildcard segment cannot be announced")
	ErrBounds          = errors.New("frame bounds do not fit together")
	ErrTimescale       = errors.New("timescale is zero")
	ErrParam           = errors.New("parameter occurs twice")
	ErrTooManyParams   = errors.New("more than 64 parameters")
)

// Error says which message was wrong and why. An error of Read that is no *Error comes from the stream.
type Error struct {
	Message string // upper case, as the moq-lite reference names it
	Version Version
	Err     error
}

func (e *Error) Error() string { return fmt.Sprintf("%v %s: %v", e.Version, e.Message, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Encoder is a message that can be sent. Append appends all of it: the type where it has one on v, the length
// where it has one, and the body. It fails with an *Error if a field cannot be expressed, and then returns b
// as it was. Fields that v does not have are left out.
type Encoder interface {
	Append(b []byte, v Version) ([]byte, error)
}

// Decoder is a message that can be received. Decode takes a complete body, without type and length, which must
// be consumed exactly; it fails with an *Error. After a failure the message is not to be used.
type Decoder interface {
	Decode(body []byte, v Version) error
	name() string
}

// Read reads one message that has a length but no type, and decodes it. The error is io.EOF if the stream ends
// before its first byte, an *Error if the message is wrong or the stream ends inside it, else that of r. The length is
// checked before anything is buffered.
func Read(r wire.StreamReader, v Version, m Decoder) error {
	body, err := wire.ReadBody(r, Limit(m))
	if err != nil {
		return readError(m.name(), v, err)
	}
	return m.Decode(body, v)
}

// Limit is the longest body that m can have, in bytes: MaxBody, or less where its fields cannot fill that.
func Limit(m Decoder) uint64 {
	switch m.(type) {
	case *Setup:
		return MaxSetupBody
	case *Goaway:
		return uint64(wire.VarintLen(MaxURI)) + MaxURI
	case *Group, *Probe, *SessionInfo, *AnnounceOK, *TrackInfo:
		return 8 * wire.MaxVarintLen
	default:
		return MaxBody
	}
}

// readError wraps what is wrong with the bytes and leaves errors of the stream alone.
func readError(name string, v Version, err error) error {
	if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{name, v, err}
	}
	return err
}

// readTyped reads a type, a length and a body.
func readTyped(r wire.StreamReader, name string, v Version) (typ uint64, body []byte, err error) {
	if typ, err = wire.ReadVarint(r); err != nil {
		return 0, nil, readError(name, v, err)
	}
	if body, err = wire.ReadBody(r, MaxBody); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, readError(name, v, err)
	}
	return typ, body, nil
}

// reader adds what only moq-lite has to wire.Reader.
type reader struct{ wire.Reader }

func newReader(body []byte) reader { return reader{wire.NewReader(body)} }

// done ends the decoding of a message that exists on v if ok is true.
func (r *reader) done(m Decoder, v Version, ok bool) error {
	err := r.Done()
	if !ok {
		err = ErrVersion
	}
	if err != nil {
		return &Error{m.name(), v, err}
	}
	return nil
}

// path reads a path and normalizes it.
func (r *reader) path() string {
	p, err := paths.Clean(r.String())
	if err != nil {
		r.Fail(err)
	}
	return p
}

// hops reads a chain of hops.
func (r *reader) hops() []Hop {
	n := r.hopCount()
	if n == 0 || r.Err() != nil {
		return nil
	}
	hops := make([]Hop, 0, n)
	for range n {
		h := r.Varint()
		if h != 0 && slices.Contains(hops, h) {
			r.Fail(ErrRepeatedHop)
		}
		hops = append(hops, h)
	}
	return hops
}

// hopCount reads the length of a chain.
func (r *reader) hopCount() uint64 {
	n := r.Varint()
	if n > MaxHops {
		r.Fail(ErrTooManyHops)
		return 0
	}
	return n
}

// option reads an optional number.
func (r *reader) option() Option {
	v, ok := r.Option()
	return Option{Set: ok, Value: v}
}

// writer adds what only moq-lite has to wire.Writer.
type writer struct{ wire.Writer }

func newWriter(b []byte) writer { return writer{wire.NewWriter(b)} }

// done ends the encoding of a message.
func (w *writer) done(name string, v Version) ([]byte, error) {
	b, err := w.Done()
	if err != nil {
		return b, &Error{name, v, err}
	}
	return b, nil
}

// need fails unless the message or field exists on the version.
func (w *writer) need(ok bool) {
	if !ok {
		w.Fail(ErrVersion)
	}
}

// path appends a path in its normalized form.
func (w *writer) path(p string) {
	p, err := paths.Clean(p)
	if err != nil {
		w.Fail(err)
	}
	w.String(p)
}

// hops appends a chain of hops.
func (w *writer) hops(hops []Hop) {
	w.hopCount(uint64(len(hops)))
	for i, h := range hops {
		if h != 0 && slices.Contains(hops[:i], h) {
			w.Fail(ErrRepeatedHop)
		}
		w.Varint(h)
	}
}

// hopCount appends the length of a chain.
func (w *writer) hopCount(n uint64) {
	if n > MaxHops {
		w.Fail(ErrTooManyHops)
		return
	}
	w.Varint(n)
}

// option appends an optional number.
func (w *writer) option(o Option) { w.Option(o.Value, o.Set) }
