package route

// HoldsPending is how many updates wait for their hold to pass (4.1).
func (t *Table) HoldsPending() int {
	n := 0
	for h := t.holds.first; h != nil; h = h.next {
		n++
	}
	return n
}
