// Package drill holds the outage drill: 500 viewers that play media while the auth server fails in every way that it
// can. It takes minutes and is not part of the usual tiers; `make drill` runs it and prints the figures of
// docs/reliability.md.
package drill
