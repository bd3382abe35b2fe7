// Package longlink measures what a link between two relays carries over a long way with loss: QUIC sessions, one and several, and
// qmux over TCP with the kernel's congestion controls, through the emulated link of package linklab. It needs root and
// takes minutes; `make longlink` runs it and prints the tables of docs/long-links.md.
package longlink
