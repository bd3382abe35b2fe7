package lease

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// Limits of the recovery cache (A13).
const (
	recoveryTime = 30 * time.Second
	recoverySize = 4096
)

// question is the whole of a request that a policy could depend on, as a hash: one session's grant answers no other
// question, and no credential is kept.
type question [sha256.Size]byte

func questionOf(r auth.Request) question {
	h := sha256.New()
	add := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(p)))) // never fails
			_, _ = h.Write([]byte(p))
		}
	}
	add(string(r.Transport), r.ServerName, r.ALPN, r.Path, r.Query, string(r.Role), family(r.Remote))
	if t := r.SetupToken; t != nil {
		add("token", string(binary.AppendUvarint(nil, t.Kind)), string(t.Value))
	}
	if t := r.TLS; t != nil {
		add("tls", t.Fingerprint)
	}
	return question(h.Sum(nil))
}

// family is the address family of a client, which is all that is taken of its address: a viewer that comes back from
// another port is the same viewer.
func family(remote string) string {
	addr, err := netip.ParseAddrPort(remote)
	switch {
	case err != nil:
		return ""
	case addr.Addr().Unmap().Is4():
		return "4"
	}
	return "6"
}

// recovery remembers what was granted a moment ago. It is pure, and not safe for concurrent use.
type recovery struct {
	order   list.List // of *memory, the one to forget first in front
	entries map[question]*list.Element
}

// memory is the last thing that was heard about one question.
type memory struct {
	question question
	grant    auth.Grant
	at       time.Time // of the answer
	denied   bool      // it was a refusal, which older grants do not get past
}

func newRecovery() *recovery { return &recovery{entries: make(map[question]*list.Element)} }

// granted remembers a grant that answers a question put at asked.
func (c *recovery) granted(now, asked time.Time, q question, g auth.Grant) {
	if e := c.entries[q]; e != nil {
		old := e.Value.(*memory)
		if old.denied && !asked.After(old.at) {
			return // a refusal came while the question was on its way
		}
	}
	c.put(&memory{question: q, grant: g, at: now})
}

// denied forgets what was granted.
func (c *recovery) denied(now time.Time, q question) {
	c.put(&memory{question: q, at: now, denied: true})
}

func (c *recovery) put(m *memory) {
	if e := c.entries[m.question]; e != nil {
		c.order.Remove(e)
	}
	c.entries[m.question] = c.order.PushBack(m)
	if len(c.entries) > recoverySize {
		c.forget(c.order.Front())
	}
}

func (c *recovery) forget(e *list.Element) {
	c.order.Remove(e)
	delete(c.entries, e.Value.(*memory).question)
}

// recall returns what was heard of a question less than 30 s ago: a grant that has not expired, or a refusal. A hit does
// not make it live longer.
func (c *recovery) recall(now time.Time, q question) (m memory, ok bool) {
	e := c.entries[q]
	if e == nil {
		return memory{}, false
	}
	m = *e.Value.(*memory)
	expired := !m.grant.Expires.IsZero() && !now.Before(m.grant.Expires)
	if expired || now.Sub(m.at) > recoveryTime || now.Before(m.at) {
		return memory{}, false
	}
	c.order.MoveToBack(e) // least recently used goes first
	return m, true
}

// size is how many questions are remembered.
func (c *recovery) size() int { return len(c.entries) }
