// Package qstream is what raw QUIC and WebTransport connections have in common: streams of quic-go
// as transport streams, their error codes on the wire, and the translation of quic-go's errors.
package qstream
