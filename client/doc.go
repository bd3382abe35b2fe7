// Package client publishes and subscribes media over MoQ.
//
// [Dial] opens a session with a relay. [Client.Publish] makes a [Broadcast], a set of tracks under one path: create its
// tracks, announce it, and write groups of frames. [Client.Announced] follows what others announce, [Client.Subscribe]
// reads a track as it comes, [Client.Fetch] asks for one group. Every client can do all of it at once, within what the
// relay allows.
//
// # Delivery
//
// A track is a series of groups; a group is a series of frames that depend on each other, such as the pictures from one
// key frame to the next. Groups travel independently: when a link is slow the newest go first, and those that fall
// behind by more than the subscription's max age are given up. Inside a group frames come completely and in order, or
// the group ends with an error. Each frame is handed out once.
//
// # Blocking
//
// Writers never block: slow subscribers cost themselves alone. Readers block until there is something to read, their
// context ends, or the subscription is over. A client has a few goroutines of its own; Close returns when they have ended.
package client
