// Package stats publishes what a relay counts, as broadcasts of its own below a hidden prefix (config 7): one JSON object
// per interval and track, from broadcast path to totals. A [Book] keeps the totals; a [Publisher] serves them, to the
// host's origin like any other publisher.
package stats
