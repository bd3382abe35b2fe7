package media

import "errors"

// claims is what one copy may still bring, as far as it has said so or we have asked. Pure.
type claims struct {
	floor    uint64 // lowest group asked for
	start    uint64 // declared by the copy
	declared bool
	end      uint64 // declared, exclusive
	ended    bool
	limit    uint64 // set by us, exclusive (F28)
	limited  bool
	stopped  bool  // a group was refused because of limit
	begun    spans // streams and datagrams that arrived
	dropped  spans // declared as not coming
	newest   uint64
	any      bool
	// behind counts groups that were refused because readers are past them, each newer than the one before, while the copy
	// had brought nothing else; past is the newest.
	behind uint64
	past   uint64
}

// behindSome is how many groups show that a copy is behind, and not that a few crossed our request.
const behindSome = 3

// lowest returns the lowest group that the copy may bring.
func (c *claims) lowest() uint64 {
	if c.declared {
		return max(c.floor, c.start)
	}
	return c.floor
}

// admit judges a group that arrives (F34); a publisher sends each group once.
func (c *claims) admit(seq uint64) error {
	switch {
	case seq < c.lowest():
		return ErrBelowStart
	case c.ended && seq >= c.end, c.limited && seq >= c.limit:
		return ErrPastEnd
	case c.begun.has(seq):
		return ErrDuplicate
	}
	return nil
}

// refuse notes that a group was refused with err. It reports whether that shows that the copy is behind.
func (c *claims) refuse(seq uint64, err error) (behind bool) {
	switch {
	case errors.Is(err, ErrPastEnd):
		c.stopped = c.stopped || !c.ended || seq < c.end
	case (errors.Is(err, ErrBelowStart) || errors.Is(err, ErrOld)) && !c.any && (c.behind == 0 || seq > c.past):
		c.past = seq
		c.behind++
		return c.behind == behindSome
	}
	return false
}

// begin notes that a group arrived.
func (c *claims) begin(seq uint64) {
	c.begun.add(seq, seq)
	c.newest, c.any = max(c.newest, seq), true
}

// may says whether the copy may bring a group that it has not begun (F33).
func (c *claims) may(seq uint64) bool { return c.admit(seq) == nil && !c.dropped.has(seq) }

// declare notes the start. Only the first one counts, until void.
func (c *claims) declare(group uint64) bool {
	if c.declared {
		return false
	}
	c.start, c.declared = group, true
	return true
}

// ask notes the lowest group asked for. Lowering it voids a declared start: no second one comes, and groups below it
// may (F27a).
func (c *claims) ask(group uint64) {
	if group < c.floor {
		c.declared = false
	}
	c.floor = group
}
