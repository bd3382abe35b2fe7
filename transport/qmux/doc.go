// Package qmux carries MoQ over ordered byte streams and WebSocket messages, where QUIC cannot go or does not do well: a
// connection of it multiplexes streams with flow control and priorities as QUIC has them (draft-ietf-quic-qmux-00 to -02).
// It speaks all three drafts and the form before them, which peers call "webtransport" and which WebSocket alone has.
//
// A connection has two goroutines: one reads and never waits for anything but the carrier (without flow control, which
// that oldest form lacks, for its user too), one writes. What streams have to send stays with them until the writer takes it, record by
// record, most urgent first, and the system's buffer is kept short: what is urgent waits for about twenty milliseconds of what
// is on its way, or for a hundred kilobytes.
//
// On the carriers with TCP below, the congestion control is the system's to choose, see SetCongestion: on long links with
// loss BBR carries many times what the New Reno of QUIC does (docs/long-links.md).
package qmux
