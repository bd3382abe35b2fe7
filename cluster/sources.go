package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// Source says who named a peer (C1). The order is that in which they take over from each other.
type Source uint8

// The sources of peers.
const (
	SourceConnect Source = iota // cluster.connect; its entries are never dropped
	SourceAPI                   // cluster.connect_api
	SourceLAN                   // LAN discovery
	sources
)

func (s Source) String() string {
	switch s {
	case SourceConnect:
		return "connect"
	case SourceAPI:
		return "connect_api"
	case SourceLAN:
		return "lan"
	default:
		return fmt.Sprintf("source %d", uint8(s))
	}
}

// MarshalText writes the source by name.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ActionKind says what to do about the dial of a peer.
type ActionKind uint8

// The kinds of action.
const (
	ActionDial   ActionKind = iota // start dialing
	ActionRedial                   // drop the session and dial with other settings
	ActionDrop                     // drop the session and stop dialing
)

func (k ActionKind) String() string { return [...]string{"dial", "redial", "drop"}[k] }

// Action is one consequence of a changed list.
type Action struct {
	Kind   ActionKind
	Key    string
	Source Source // the one whose settings count from now on; without meaning for ActionDrop
	Entry  Entry  // those settings; zero for ActionDrop
}

// Peers remembers, for each peer key, what each source says about it and which one is active: the one whose settings
// the running dial uses. It is pure; the zero value is empty.
type Peers struct {
	byKey map[string]*claims
}

type claims struct {
	entries [sources]*Entry
	active  Source
}

// Set replaces the list of one source and returns what follows, in the order of the keys. Keys of entries must be
// unique. A later list of SourceConnect may add and change entries but takes none away.
func (p *Peers) Set(src Source, entries []Entry) []Action {
	if p.byKey == nil {
		p.byKey = make(map[string]*claims)
	}
	named := make(map[string]*Entry, len(entries))
	for i := range entries {
		named[entries[i].key] = &entries[i]
	}
	keys := slices.Collect(maps.Keys(named))
	for key := range p.byKey {
		if named[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var actions []Action
	for _, key := range keys {
		action, ok := Action{}, false
		if e := named[key]; e != nil {
			action, ok = p.claim(src, *e)
		} else if src != SourceConnect {
			action, ok = p.release(src, key)
		}
		if ok {
			actions = append(actions, action)
		}
	}
	return actions
}

// Active tells which source's settings count for a key.
func (p *Peers) Active(key string) (Source, bool) {
	c := p.byKey[key]
	if c == nil {
		return 0, false
	}
	return c.active, true
}

// claim records that src names a peer.
func (p *Peers) claim(src Source, e Entry) (Action, bool) {
	c := p.byKey[e.key]
	if c == nil {
		c = &claims{active: src}
		c.entries[src] = &e
		p.byKey[e.key] = c
		return Action{ActionDial, e.key, src, e}, true
	}
	old := c.entries[src]
	c.entries[src] = &e
	if src != c.active || old.Same(e) {
		return Action{}, false
	}
	return Action{ActionRedial, e.key, src, e}, true
}

// release records that src names a peer no more. If src was active, the next one takes over.
func (p *Peers) release(src Source, key string) (Action, bool) {
	c := p.byKey[key]
	old := c.entries[src]
	c.entries[src] = nil
	if old == nil || src != c.active {
		return Action{}, false
	}
	for next, e := range c.entries {
		if e == nil {
			continue
		}
		c.active = Source(next)
		if old.Same(*e) {
			return Action{}, false
		}
		return Action{ActionRedial, key, c.active, *e}, true
	}
	delete(p.byKey, key)
	return Action{Kind: ActionDrop, Key: key}, true
}
