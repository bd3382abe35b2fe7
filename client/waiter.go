package client

import "context"

// bell lets one goroutine wait for rings of many; rings that nobody waits for are merged.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring never blocks.
func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// wait returns after a ring, or with the cause when ctx ends.
func (b bell) wait(ctx context.Context) error {
	select {
	case <-b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
