package message

import (
	"slices"

	"github.com/moqmesh/moqmesh/wire"
)

// Parameters of SETUP (moq-lite 5.1).
const (
	paramProbe = 1
	paramPath  = 2
	paramRole  = 3
	paramCost  = 4
	paramHop   = 5
)

// Levels of the probe parameter of SETUP.
const (
	ProbeNone     = 0
	ProbeReport   = 1 // can measure
	ProbeIncrease = 2 // can also pad
)

// Append appends a SETUP with its parameters in ascending order. Zero values are left out, but for a path and a
// cost that are set.
func (m Setup) Append(b []byte, v Version) ([]byte, error) {
	w := newWriter(b)
	w.need(v.HasSetup())
	body := w.Begin()
	w.Varint(m.count())
	if m.Probe != ProbeNone {
		w.param(paramProbe, m.Probe)
	}
	if m.HasPath {
		w.Varint(paramPath)
		w.String(m.Path)
	}
	if m.Role != RoleBoth {
		w.param(paramRole, uint64(m.Role))
	}
	if m.HasCost {
		w.param(paramCost, min(m.Cost, wire.MaxVarint))
	}
	if m.Hop != 0 {
		w.param(paramHop, m.Hop)
	}
	w.End(body, MaxSetupBody)
	return w.done(m.name(), v)
}

// count is the number of parameters.
func (m Setup) count() (n uint64) {
	for _, set := range [...]bool{m.Probe != ProbeNone, m.HasPath, m.Role != RoleBoth, m.HasCost, m.Hop != 0} {
		if set {
			n++
		}
	}
	return n
}

// param appends a parameter that holds a number.
func (w *writer) param(id, value uint64) {
	w.Varint(id)
	size := w.Begin()
	w.Varint(value)
	w.End(size, wire.MaxVarintLen)
}

// Decode replaces m. Unknown parameters are ignored; a probe level that is not known reads as ProbeIncrease, a role as
// RoleBoth.
func (m *Setup) Decode(body []byte, v Version) error {
	*m = Setup{}
	r := newReader(body)
	var seen [MaxSetupParams]uint64
	n := r.paramCount()
	for i := range n {
		id := r.Varint()
		if slices.Contains(seen[:i], id) {
			r.Fail(ErrParam)
		}
		seen[i] = id
		m.param(&r, id, r.Bytes())
	}
	return r.done(m, v, v.HasSetup())
}

// param decodes one parameter and reports what is wrong to r.
func (m *Setup) param(r *reader, id uint64, value []byte) {
	p := wire.NewReader(value)
	switch id {
	case paramProbe:
		m.Probe = min(p.Varint(), ProbeIncrease)
	case paramPath:
		m.Path, m.HasPath = p.RestString(), true
	case paramRole:
		if m.Role = Role(p.Varint()); m.Role > RoleSubscriber {
			m.Role = RoleBoth
		}
	case paramCost:
		m.Cost, m.HasCost = p.Varint(), true
	case paramHop:
		m.Hop = p.Varint()
	default:
		return
	}
	if err := p.Done(); err != nil {
		r.Fail(err)
	}
}

// paramCount reads the number of parameters.
func (r *reader) paramCount() uint64 {
	n := r.Varint()
	if n > MaxSetupParams {
		r.Fail(ErrTooManyParams)
		return 0
	}
	return n
}

func (Setup) name() string { return "SETUP" }
