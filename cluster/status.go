package cluster

import (
	"slices"
	"time"
)

// State of a peer's dial.
type State string

// The states.
const (
	StateDialing   State = "dialing"
	StateConnected State = "connected"
	StateDraining  State = "draining" // the peer sent GOAWAY; the session still serves
	StateWaiting   State = "waiting"  // until NextDial
)

// Status describes one peer, for pages.
type Status struct {
	Key    string    `json:"key"`    // URL without query: shows the path, so not for logs
	Name   string    `json:"name"`   // scheme, host and port
	Source Source    `json:"source"` // whose settings count
	Cost   uint64    `json:"cost"`   // what we charge for pulling from the peer
	State  State     `json:"state"`
	Since  time.Time `json:"since"` // of the state
	// Attempts counts the dials since the last session that lasted GoodSession.
	Attempts int `json:"attempts"`
	// LastError is why the last dial or session ended; empty before the first failure. It stays when a later dial
	// succeeds; LastErrorAt tells them apart.
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	NextDial    time.Time `json:"next_dial,omitzero"` // zero unless waiting
	// Sessions are the ids of the live sessions: one, or two while one takes over from the other.
	Sessions []uint64 `json:"sessions"`
}

// enter records a state, unless the dial is already in it.
func (d *dial) enter(s State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.State != s {
		d.state.State, d.state.Since = s, time.Now()
	}
	d.state.NextDial = time.Time{}
}

func (d *dial) enterWaiting(pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.state.State, d.state.Since, d.state.NextDial = StateWaiting, now, now.Add(pause)
}

func (d *dial) attempt() (n int) {
	d.counters.dials.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Attempts++
	return d.state.Attempts
}

// fail records why a dial or session ended and returns the text to show.
func (d *dial) fail(err error) string {
	text := d.entry.scrub(err.Error())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.LastError, d.state.LastErrorAt = text, time.Now()
	return text
}

func (d *dial) forgetAttempts() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Attempts = 0
}

func (d *dial) addSession(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Sessions = append(d.state.Sessions, id)
}

func (d *dial) removeSession(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Sessions = slices.DeleteFunc(d.state.Sessions, func(have uint64) bool { return have == id })
}

func (d *dial) status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Since, s.LastErrorAt, s.NextDial = s.Since.UTC(), s.LastErrorAt.UTC(), s.NextDial.UTC()
	s.Sessions = append([]uint64{}, s.Sessions...)
	return s
}
