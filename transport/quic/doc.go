// Package quic carries MoQ directly over QUIC: one connection is one session.
package quic
