package cluster

import (
	"errors"
	"fmt"
)

// Reasons for refusing an entry of a peer list; an EntryError wraps one of them.
var (
	ErrBareHost     = errors.New("a bare host is not accepted, write https:// before it")
	ErrURL          = errors.New("not a valid URL")
	ErrHost         = errors.New("the URL has no host")
	ErrScheme       = errors.New("unknown scheme")
	ErrNotDialable  = errors.New("scheme cannot be dialed yet")
	ErrCost         = errors.New("cost is not a whole number from 0 to 2^62-1")
	ErrAsymmetric   = errors.New("egress differs from cost; asymmetric prices are not supported")
	ErrPolicyTwice  = errors.New("the URL carries cost or jwt beside the fields of the object")
	ErrToken        = errors.New("token holds characters that a URL cannot carry")
	ErrUnknownField = errors.New("unknown field")
	ErrFieldType    = errors.New("field has the wrong type")
	ErrShape        = errors.New("an entry is a URL or an object with url, cost, egress and token")
	ErrConflict     = errors.New("the same peer is listed twice with different settings")
)

// Errors of a dial, for the dial function to wrap. Any other error is a plain failure.
var (
	// ErrRefused says that the peer answered and does not want us.
	ErrRefused = errors.New("refused by the peer")
	// ErrSelf says that the peer has our own hop id (C22a).
	ErrSelf = errors.New("the peer has our own id: this is a dial to ourselves or a copied cluster.id")
)

// SelfError is ErrSelf with what an operator needs to find the copied id.
type SelfError struct{ Local, Remote string } // addresses of the connection

func (e *SelfError) Error() string {
	return fmt.Sprintf("%v (we are %s, it is %s)", ErrSelf, e.Local, e.Remote)
}

func (e *SelfError) Unwrap() error { return ErrSelf }

// EntryError says what is wrong with one entry of a peer list. It names the entry by place and by host, never by
// path, query or token.
type EntryError struct {
	Index int    // place in the list, from 0
	Name  string // scheme, host and port as far as they are known
	Field string // of the object form, if the fault lies in one
	Err   error  // one of the reasons above
}

func (e *EntryError) Error() string {
	text := fmt.Sprintf("entry %d", e.Index+1)
	if e.Name != "" {
		text += fmt.Sprintf(" (%s)", e.Name)
	}
	if e.Field != "" {
		text += fmt.Sprintf(": %q", e.Field)
	}
	return text + ": " + e.Err.Error()
}

func (e *EntryError) Unwrap() error { return e.Err }
