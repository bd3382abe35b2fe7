package message

import (
	"errors"
	"io"

	"github.com/moqmesh/moqmesh/wire"
)

// First bytes of the in-band SETUP messages (moq-lite 1.4).
const (
	typeClientSetup = 0x20
	typeServerSetup = 0x21
)

// Append appends a CLIENT_SETUP: the type, 16 bits of length, and the body. It is the same whatever v is, because v is
// what it negotiates.
func (m ClientSetup) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.U8(typeClientSetup)
	body := w.Begin16()
	w.Varint(uint64(len(m.Versions)))
	for _, code := range m.Versions {
		w.Varint(code)
	}
	w.params(m.Params)
	w.End16(body)
	return w.done(m.name(), v)
}

// Decode replaces m. The byte fields of the parameters alias body.
func (m *ClientSetup) Decode(body []byte, v Version) error {
	*m = ClientSetup{}
	r := newReader(body)
	n := r.Varint()
	if n > uint64(r.Len()) { // each takes a byte at least
		r.Fail(wire.ErrTruncated)
		n = 0
	}
	if n > 0 {
		m.Versions = make([]uint64, n)
	}
	for i := range m.Versions {
		m.Versions[i] = r.Varint()
	}
	m.Params = r.params()
	return r.done(m, v, true)
}

func (ClientSetup) name() string { return "CLIENT_SETUP" }

// Append appends a SERVER_SETUP.
func (m ServerSetup) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.U8(typeServerSetup)
	body := w.Begin16()
	w.Varint(m.Version)
	w.params(m.Params)
	w.End16(body)
	return w.done(m.name(), v)
}

// Decode replaces m. The byte fields of the parameters alias body.
func (m *ServerSetup) Decode(body []byte, v Version) error {
	r := newReader(body)
	*m = ServerSetup{Version: r.Varint()}
	m.Params = r.params()
	return r.done(m, v, true)
}

func (ServerSetup) name() string { return "SERVER_SETUP" }

// ReadClientSetup reads a CLIENT_SETUP, type included, from the first bidirectional stream of a client. Errors are
// those of Read.
func ReadClientSetup(r wire.StreamReader) (m ClientSetup, err error) {
	return m, readInband(r, typeClientSetup, &m)
}

// ReadServerSetup reads the answer, type included.
func ReadServerSetup(r wire.StreamReader) (m ServerSetup, err error) {
	return m, readInband(r, typeServerSetup, &m)
}

// readInband reads a type, 16 bits of length and a body.
func readInband(r wire.StreamReader, want byte, m Decoder) error {
	typ, err := r.ReadByte()
	if err != nil {
		return err
	}
	if typ != want {
		return &Error{m.name(), Lite02, ErrType}
	}
	var size [2]byte
	if _, err = io.ReadFull(r, size[:]); err == nil {
		var body []byte
		if body, err = wire.ReadFull(r, uint64(size[0])<<8|uint64(size[1])); err == nil {
			return m.Decode(body, Lite02)
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return readError(m.name(), Lite02, err)
}

// params appends moq-transport-14 parameters.
func (w *writer) params(params []Param) {
	if len(params) > MaxSetupParams {
		w.Fail(ErrTooManyParams)
	}
	w.Varint(uint64(len(params)))
	for i, p := range params {
		if hasParam(params[:i], p.ID) {
			w.Fail(ErrParam)
		}
		w.Varint(p.ID)
		if p.ID%2 == 0 {
			w.Varint(p.Value)
		} else {
			w.Bytes(p.Bytes)
		}
	}
}

// params reads moq-transport-14 parameters.
func (r *reader) params() []Param {
	var params []Param
	for range r.paramCount() {
		p := Param{ID: r.Varint()}
		if hasParam(params, p.ID) {
			r.Fail(ErrParam)
		}
		if p.ID%2 == 0 {
			p.Value = r.Varint()
		} else {
			p.Bytes = r.Bytes()
		}
		params = append(params, p)
	}
	return params
}

func hasParam(params []Param, id uint64) bool {
	for _, p := range params {
		if p.ID == id {
			return true
		}
	}
	return false
}
