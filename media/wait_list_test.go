package media

import "testing"

// TestWaitList: a list that was taken is no business of those who leave, and the other way round.
func TestWaitList(t *testing.T) {
	var l waitList
	ws := []*Waiter{NewWaiter(), NewWaiter(), NewWaiter(), NewWaiter()}
	for _, w := range ws {
		l.push(w)
	}
	for _, i := range []int{0, 2} { // the last and one in between
		if !l.drop(ws[i]) || !ws[i].passed.Load() {
			t.Fatalf("waiter %d is not in the list", i)
		}
	}
	taken := l.take()
	if l.head != nil || l.take() != nil {
		t.Error("the list is not empty")
	}
	late := NewWaiter()
	l.push(late)
	if l.drop(ws[1]) || l.drop(ws[3]) || l.head != late {
		t.Error("a waiter that was taken left the list of those who came later")
	}
	if ws[1].passed.Load() || ws[3].passed.Load() {
		t.Error("passed before anybody has woken them")
	}
	wakeAll(taken)
	for i, w := range ws {
		if got, want := len(w.ch), i%2; got != want || !w.passed.Load() {
			t.Errorf("waiter %d: %d tokens, want %d; passed %v", i, got, want, w.passed.Load())
		}
	}
	if !l.drop(late) || l.head != nil {
		t.Error("the late one is not in the list")
	}
}
