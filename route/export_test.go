package route

import "fmt"

// Empty reports what is left in the table, for tests that have taken everything out again.
func (t *Table) Empty() error {
	switch {
	case len(t.root.children) > 0 || !t.root.idle():
		return fmt.Errorf("nodes left: %v", t.root.children)
	case t.root.ears != 0:
		return fmt.Errorf("%d ears left", t.root.ears)
	case len(t.lists.lists) > 0:
		return fmt.Errorf("%d hop lists left", len(t.lists.lists))
	case t.holds.first != nil || t.marks.first != nil || t.waits.first != nil:
		return fmt.Errorf("timers left")
	case len(t.sessions)+len(t.consumers) > 0:
		return fmt.Errorf("%d sessions and %d consumers left", len(t.sessions), len(t.consumers))
	case len(t.dirty)+len(t.effects) > 0:
		return fmt.Errorf("unfinished event")
	}
	return nil
}
