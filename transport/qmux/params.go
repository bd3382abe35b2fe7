package qmux

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moqmesh/moqmesh/wire"
)

// The ids of transport parameters.
const (
	paramIdleTimeout   = 0x01 // milliseconds
	paramData          = 0x04
	paramBidiLocal     = 0x05
	paramBidiRemote    = 0x06
	paramUni           = 0x07
	paramStreamsBidi   = 0x08
	paramStreamsUni    = 0x09
	paramResetAt       = 0x1d
	paramDatagram      = 0x20
	paramMaxRecord     = 0x0571c59429cd0845
	paramProtocols     = 0x3d4f9c2a8b1e6075
	maxParams          = 64  // that a peer may send, ours or not
	maxProtocols       = 256 // that it may list
	maxProtocolsLength = 255
)

// quicOnly are parameters of QUIC that make no sense here.
var quicOnly = []uint64{0x00, 0x02, 0x03, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10}

// params are the transport parameters of one end.
type params struct {
	idleTimeout                      uint64 // milliseconds; 0 = none
	data, bidiLocal, bidiRemote, uni uint64
	streamsBidi, streamsUni          uint64
	datagram                         uint64 // a whole frame; 0 = none
	maxRecord                        uint64
	resetAt                          bool
	protocols                        []string // in band; nil = none sent
}

var (
	errParamTwice     = errors.New("transport parameter sent twice")
	errParamForbidden = errors.New("transport parameter of QUIC")
	errParamTooMany   = errors.New("too many transport parameters")
	errRecordSize     = errors.New("max_record_size below the minimum")
	errProtocolList   = errors.New("bad list of protocols")
)

// fields lists the numeric parameters in the order in which they are sent.
func (p *params) fields() []struct {
	id    uint64
	value *uint64
} {
	return []struct {
		id    uint64
		value *uint64
	}{
		{paramIdleTimeout, &p.idleTimeout},
		{paramData, &p.data},
		{paramBidiLocal, &p.bidiLocal},
		{paramBidiRemote, &p.bidiRemote},
		{paramUni, &p.uni},
		{paramStreamsBidi, &p.streamsBidi},
		{paramStreamsUni, &p.streamsUni},
		{paramDatagram, &p.datagram},
		{paramMaxRecord, &p.maxRecord},
	}
}

// append appends the QX_TRANSPORT_PARAMETERS frame.
func (p *params) append(b []byte) []byte {
	var body []byte
	for _, f := range p.fields() {
		if *f.value != 0 {
			body = wire.AppendVarint(body, f.id)
			body = wire.AppendVarint(body, uint64(wire.VarintLen(*f.value)))
			body = wire.AppendVarint(body, *f.value)
		}
	}
	if p.resetAt {
		body = append(wire.AppendVarint(body, paramResetAt), 0)
	}
	if p.protocols != nil {
		var list []byte
		for _, name := range p.protocols {
			list = append(wire.AppendVarint(list, uint64(len(name))), name...)
		}
		body = wire.AppendVarint(body, paramProtocols)
		body = append(wire.AppendVarint(body, uint64(len(list))), list...)
	}
	b = wire.AppendVarint(b, frameParams)
	return append(wire.AppendVarint(b, uint64(len(body))), body...)
}

// parseParams reads the body of the frame.
func parseParams(body []byte) (params, error) {
	p := params{maxRecord: maxRecord}
	r := wire.NewReader(body)
	var seen []uint64
	for n := 0; r.Len() > 0 && r.Err() == nil; n++ {
		if n == maxParams {
			return p, errParamTooMany
		}
		id, value := r.Varint(), r.Bytes()
		if r.Err() != nil {
			break
		}
		known, err := p.set(id, value)
		if err == nil && known && slices.Contains(seen, id) {
			err = errParamTwice
		}
		if err != nil {
			return p, fmt.Errorf("transport parameter 0x%x: %w", id, err)
		}
		if known {
			seen = append(seen, id)
		}
	}
	if err := r.Done(); err != nil {
		return p, fmt.Errorf("transport parameters: %w", err)
	}
	if p.maxRecord < maxRecord {
		return p, errRecordSize
	}
	return p, nil
}

// set takes one parameter over; unknown ones are skipped.
func (p *params) set(id uint64, value []byte) (known bool, err error) {
	switch {
	case slices.Contains(quicOnly, id):
		return true, errParamForbidden
	case id == paramResetAt:
		p.resetAt = true
		return true, nil
	case id == paramProtocols:
		p.protocols, err = parseProtocols(value)
		return true, err
	}
	for _, f := range p.fields() {
		if f.id == id {
			r := wire.NewReader(value)
			*f.value = r.Varint()
			return true, r.Done()
		}
	}
	return false, nil
}

func parseProtocols(value []byte) ([]string, error) {
	list := []string{}
	r := wire.NewReader(value)
	for r.Len() > 0 && r.Err() == nil {
		if len(list) == maxProtocols {
			return nil, errProtocolList
		}
		list = append(list, r.StringMax(maxProtocolsLength))
	}
	if r.Err() != nil {
		return nil, errProtocolList
	}
	return list, nil
}

// agree returns the first protocol of the server's list that the client lists too, empty if there is none.
func agree(server, client []string) string {
	token, _ := choose(server, client)
	return token
}
