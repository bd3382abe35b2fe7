// Package bench drives relays under load and measures what they deliver and what that costs: loss, latency, CPU time,
// memory. It works with any relay that speaks moq-lite 05 or 06 over raw QUIC or WebTransport: it needs a URL, and process
// ids for CPU time and memory.
//
// Three rules keep the figures honest. Frames are sent on a fixed schedule, whatever the relay does, and latency counts from
// when a frame was due, so that a stall is charged to every frame that it held up. The generator measures itself, and says
// so where it was the limit. Viewers are as cheap as can be: they check every frame and keep none.
package bench
